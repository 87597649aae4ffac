/* URLs parsed, displayed and encoded. */
#include "remote/http.h"

#include "caterva.h"
#include "caterva_upkeep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void is_piece(const char *at, size_t size, const char *expected)
{
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(at, expected, size);
}

static void pieces_are_found(void **state)
{
    cv_url u;
    (void)state;
    assert_int_equal(cv_url_parse("HTTPS://Host.example:8443/a/b.b2nd?x=1&y=%2F", &u, NULL),
                     CATERVA_OK);
    assert_int_equal(u.scheme, CV_SCHEME_HTTPS);
    assert_int_equal(u.port, 8443);
    is_piece(u.host, u.host_size, "Host.example");
    is_piece(u.path, u.path_size, "/a/b.b2nd");
    is_piece(u.query, u.query_size, "x=1&y=%2F");
    assert_int_equal(cv_url_parse("http://[::1]:80", &u, NULL), CATERVA_OK);
    is_piece(u.host, u.host_size, "[::1]");
    assert_int_equal(u.path_size, 0);
    assert_null(u.query);
    assert_int_equal(cv_url_parse("s3://my.bucket/a key?with#all=\xc3\xa4", &u, NULL),
                     CATERVA_OK);
    is_piece(u.host, u.host_size, "my.bucket");
    is_piece(u.path, u.path_size, "a key?with#all=\xc3\xa4");
}

static void what_is_none_is_refused_without_its_secrets(void **state)
{
    static const char *const bad[] = {
        "ftp://host/x",
        "http:/host",
        "http://",
        "http:///path",
        "http://user:pw@host/x",
        "http://host/x y?secret",
        "http://host/x\r\nEvil: 1?secret",
        "http://host:0/x?secret",
        "http://host:65536/?secret",
        "http://host:1x/?secret",
        "http://ho st/",
        "http://host/x#secret",
        "http://host\\evil/?secret",
        "http://[::1/x",
        "http://host:/x?secret",
        "s3://b/k",
        "s3://bucket",
        "s3://bucket/",
        "s3:///key",
        "http://h\xc3\xb6st/x",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cv_url u;
        cv_error err = {0};
        if (cv_url_parse(bad[i], &u, &err) != CATERVA_EINVAL) fail_msg("taken: %s", bad[i]);
        assert_null(strstr(err.message, "secret"));
        assert_null(strstr(err.message, "pw"));
        assert_true(strlen(err.message) > 10);
    }
}

static void origins_compare(void **state)
{
    cv_url a, b;
    (void)state;
    assert_int_equal(cv_url_parse("https://host/x", &a, NULL), CATERVA_OK);
    assert_int_equal(cv_url_parse("https://HOST:443/y", &b, NULL), CATERVA_OK);
    assert_true(cv_url_same_origin(&a, &b));
    assert_int_equal(cv_url_parse("https://host:8443/x", &b, NULL), CATERVA_OK);
    assert_false(cv_url_same_origin(&a, &b));
    assert_int_equal(cv_url_parse("http://host:443/x", &b, NULL), CATERVA_OK);
    assert_false(cv_url_same_origin(&a, &b));
    assert_int_equal(cv_url_parse("https://host.evil/x", &b, NULL), CATERVA_OK);
    assert_false(cv_url_same_origin(&a, &b));
}

static void long_ones_are_shown_by_their_end(void **state)
{
    char text[400], shown[sizeof(cv_shown_path)];
    (void)state;
    memset(text, 'a', sizeof text);
    memcpy(text, "https://", 8);
    strcpy(text + 380, "/end.b2nd?secret");
    strcpy(shown, cv_show_url(text).text);
    assert_int_equal(strlen(shown), sizeof(cv_shown_path) - 1);
    assert_string_equal(shown + strlen(shown) - 9, "/end.b2nd");
    strcpy(shown, cv_show_url("https://user:pw@host/x?y").text);
    assert_string_equal(shown, "https://host/x");
    strcpy(shown, cv_show_url("https://user:p@w@host/x?y").text);
    assert_string_equal(shown, "https://host/x");
    strcpy(shown, cv_show_url("https://user:p/w?p@host/x?y").text);
    assert_string_equal(shown, "https://host/x");
    strcpy(shown, cv_show_url("s3://user:pw@bucket/a?y").text);
    assert_string_equal(shown, "s3://bucket/a");
    strcpy(shown, cv_show_url("s3://bucket/a?b?X-Amz-Signature=s").text);
    assert_string_equal(shown, "s3://bucket/a?b");
    strcpy(shown, cv_show_url("https://host:8080/a@1?y=@z").text);
    assert_string_equal(shown, "https://host:8080/a@1");
}

/* Also if a URL is given in place of a path. */
static void secrets_stand_in_no_sentence(void **state)
{
    static const char *const urls[] = {"https://h/a.b2nd?X-Amz-Signature=HUSH",
                                       "https://user:HUSH@h/a.b2nd", "ftp://u:HUSH@h/a.b2nd"};
    int64_t shape[] = {3};
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        caterva_array *array = NULL;
        caterva_create_options options = CATERVA_CREATE_INIT;
        caterva_error err = {0};
        options.ndim = 1;
        options.shape = shape;
        options.dtype = "<i4";
        assert_int_not_equal(caterva_create(urls[i], &options, &array, &err), CATERVA_OK);
        assert_null(strstr(err.message, "HUSH"));
        assert_non_null(strstr(err.message, "h/a.b2nd"));
        assert_int_not_equal(caterva_delete(urls[i], NULL, &err), CATERVA_OK);
        assert_null(strstr(err.message, "HUSH"));
        assert_int_not_equal(caterva_compact(urls[i], NULL, &err), CATERVA_OK);
        assert_null(strstr(err.message, "HUSH"));
        assert_int_not_equal(caterva_seal(urls[i], NULL, &err), CATERVA_OK);
        assert_null(strstr(err.message, "HUSH"));
    }
}

static void bytes_are_encoded(void **state)
{
    char room[16];
    (void)state;
    char *end = cv_url_encode("a b/=\xc3", 6, true, room, room + sizeof room);
    assert_non_null(end);
    is_piece(room, (size_t)(end - room), "a%20b/%3D%C3");
    assert_null(cv_url_encode("a b/=\xc3", 6, false, room, room + 5));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_found),
        cmocka_unit_test(what_is_none_is_refused_without_its_secrets),
        cmocka_unit_test(origins_compare),
        cmocka_unit_test(long_ones_are_shown_by_their_end),
        cmocka_unit_test(bytes_are_encoded),
        cmocka_unit_test(secrets_stand_in_no_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
