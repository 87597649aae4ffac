/* Elements of S3 responses, complete and incomplete. */
#include "remote/http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static cv_xml of(const char *text) { return (cv_xml){text, text + strlen(text)}; }

static void texts_are_found(void **state)
{
    static const char text[] =
        "<?xml version=\"1.0\"?>\n<Result "
        "xmlns=\"http://x/\"><UploadIdMarker>no</UploadIdMarker>"
        "<UploadId a=\"b\">a&amp;b=&quot;&#34;&lt;</UploadId><Empty></Empty><Gone/></Result>";
    char out[32];
    (void)state;
    assert_true(cv_xml_text(of(text), "UploadId", out, sizeof out));
    assert_string_equal(out, "a&b=\"\"<");
    assert_true(cv_xml_text(of(text), "Empty", out, sizeof out));
    assert_string_equal(out, "");
    assert_false(cv_xml_text(of(text), "Gone", out, sizeof out));
    assert_false(cv_xml_text(of(text), "Upload", out, sizeof out));
}

static void what_is_none_is_not_taken(void **state)
{
    static const char *const texts[] = {"",
                                        "<",
                                        "<a",
                                        "<a>",
                                        "<a>x",
                                        "<a>x</",
                                        "<a>x</a",
                                        "<ab>x</ab>",
                                        "x</a>",
                                        "<a>&what;</a>",
                                        "<a>x\ny</a>",
                                        "<a>12345678</a>",
                                        "<a>\xc3\xa4</a>"};
    char out[8];
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (cv_xml_text(of(texts[i]), "a", out, sizeof out)) fail_msg("%s", texts[i]);
        assert_string_equal(out, "");
    }
}

static void refusals_have_names_of_letters(void **state)
{
    static const struct {
        const char *answer, *name;
    } cases[] = {
        {"<Error><Code>NoSuchKey</Code><Message>x</Message></Error>", ", NoSuchKey"},
        {"<?xml version=\"1.0\"?><Error><Code>A1b2</Code></Error>", ", A1b2"},
        {"<Error><Code></Code></Error>", ""},
        {"<Error><Code>two words</Code></Error>", ""},
        {"<Error><Code>&lt;b&gt;</Code></Error>", ""},
        {"<Error><Code>12345678901234567890123456789012345678901234567</Code>",
         ", 12345678901234567890123456789012345678901234567"},
        {"<Error><Code>123456789012345678901234567890123456789012345678</Code>", ""},
        {"<html>not found</html>", ""},
        {"<Error><Code>NoSuch", ""},
        {"", ""},
    };
    char out[CV_XML_REFUSAL_SIZE];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cv_xml_refusal(cases[i].answer, strlen(cases[i].answer), out);
        assert_string_equal(out, cases[i].name);
    }
    cv_xml_refusal(NULL, 0, out);
    assert_string_equal(out, "");
}

static void elements_come_one_after_the_other(void **state)
{
    static const char text[] = "<P><N>1</N></P> <P><N>2</N></P><Parts/><P><N>3</N>";
    cv_xml rest = of(text), part;
    char out[8];
    (void)state;
    for (int i = 1; i <= 2; i++) {
        assert_true(cv_xml_next(&rest, "P", &part));
        assert_true(cv_xml_text(part, "N", out, sizeof out));
        assert_int_equal(out[0], '0' + i);
    }
    assert_false(cv_xml_next(&rest, "P", &part));
    assert_ptr_equal(rest.at, rest.end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_found),
        cmocka_unit_test(what_is_none_is_not_taken),
        cmocka_unit_test(refusals_have_names_of_letters),
        cmocka_unit_test(elements_come_one_after_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
