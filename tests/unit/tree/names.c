/* Names of members and keys: validity, parts, order. */
#include "array/open.h"
#include "tree/names.h"

#include "check.h"

#include <string.h>

static void check_parts(void)
{
    static const struct {
        const char *path;
        size_t stem;
        bool is_leaf;
    } cases[] = {{"x.b2nd", 1, true},     {"g/x.b2f", 3, true},   {"g/x.y.b2b", 5, true},
                 {"g.b2nd/x", 8, false},  {".b2nd", 5, false},    {"g/.b2nd", 7, false},
                 {"x", 1, false},         {"x.", 1, false},       {"x.B2ND", 1, false},
                 {"embed.b2e", 5, false}, {"g.h/x.b2nd", 5, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path = cases[i].path;
        CHECK(cv_tree_stem(path) == cases[i].stem, "%s: %zu", path, cv_tree_stem(path));
        CHECK(cv_tree_is_leaf(path) == cases[i].is_leaf, "%s", path);
    }
    CHECK(cv_tree_parent("/g/x", 4) == 2 && cv_tree_parent("/x", 2) == 0, "parents");
    CHECK(cv_tree_is_named("/g/_meta", 8, "_meta"), "a name");
    CHECK(!cv_tree_is_named("/g/x_meta", 9, "_meta") &&
              !cv_tree_is_named("_meta", 5, "_meta"),
          "no name");
    CHECK(cv_tree_is_within("/g/x", "/g") && cv_tree_is_within("/g", "/"), "within");
    CHECK(!cv_tree_is_within("/g", "/g") && !cv_tree_is_within("/gh/x", "/g"), "without");
}

/* The contents of a group follow it, before its neighbours. */
static void check_order(void)
{
    static const char *const keys[] = {"/a", "/a/b", "/a/b/c", "/a/c", "/a b", "/a-", "/b"};
    for (int i = 0; i < 7; i++)
        for (int k = 0; k < 7; k++) {
            int order = cv_tree_compare(keys[i], keys[k]);
            CHECK(order == (i > k) - (i < k), "%s, %s: %d", keys[i], keys[k], order);
        }
}

static void check_urls(void)
{
    static const struct {
        const char *url, *key;
        size_t size;
    } cases[] = {{"a.b2z::/x", "/x", 5},
                 {"a.b2z::", "/", 5},
                 {"a::b.b2z::/g/x", "/g/x", 8},
                 {"a.b2z::/x::y", "/x::y", 5},
                 {"a.b2z", NULL, 0},
                 {"::/x", NULL, 0},
                 {"a::b", NULL, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t size = 0;
        const char *key = cv_tree_url_key(cases[i].url, &size);
        bool same =
            key && cases[i].key ? strcmp(key, cases[i].key) == 0 : key == cases[i].key;
        CHECK(same && size == cases[i].size, "%s: %s, %zu", cases[i].url, key ? key : "none",
              size);
    }
}

int main(void)
{
    cv_error err;
    check_parts();
    check_order();
    check_urls();
    CHECK_OK(cv_tree_check_key("/", &err), err);
    CHECK_OK(cv_tree_check_key("/g/Grüße", &err), err);
    CHECK_OK(cv_tree_check_path("g/...x", 6, &err), err);
    CHECK(cv_tree_check_key("/g/", &err) == CATERVA_EINVAL, "a slash at the end");
    CHECK(cv_tree_check_path("g\0x", 3, &err) == CATERVA_ECORRUPT, "a zero");
    return 0;
}
