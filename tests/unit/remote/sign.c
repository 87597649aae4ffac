/* Signatures against the examples that Amazon publishes ("Authenticating Requests: Using the
 * Authorization Header", with its example keys), hashes against FIPS 180-4 and RFC 4231, and
 * credentials files. */
#include "base/sha256.h"
#include "remote/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char empty[] =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

static void check_signature(const char *path, const char *query,
                            const cv_signed_field *fields, int n, const char *expected)
{
    const cv_signing s = {.method = "GET",
                          .path = path,
                          .query = query,
                          .fields = fields,
                          .n_fields = n,
                          .payload = empty,
                          .time = "20130524T000000Z",
                          .region = "us-east-1",
                          .service = "s3",
                          .access_key = "AKIAIOSFODNN7EXAMPLE",
                          .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
    cv_buffer out = {0};
    assert_int_equal(cv_sign(&s, &out, NULL), CATERVA_OK);
    const char *signature = strstr((const char *)out.data, ",Signature=");
    assert_non_null(signature);
    assert_string_equal(signature + 11, expected);
    assert_memory_equal(out.data,
                        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/"
                        "us-east-1/s3/aws4_request,SignedHeaders=host;",
                        102);
    cv_buffer_free(&out);
}

static void amazons_examples_come_out(void **state)
{
    const cv_signed_field object[] = {{"host", "examplebucket.s3.amazonaws.com"},
                                      {"range", "bytes=0-9"},
                                      {"x-amz-content-sha256", empty},
                                      {"x-amz-date", "20130524T000000Z"}};
    const cv_signed_field list[] = {{"host", "examplebucket.s3.amazonaws.com"},
                                    {"x-amz-content-sha256", empty},
                                    {"x-amz-date", "20130524T000000Z"}};
    (void)state;
    check_signature("/test.txt", "", object, 4,
                    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    check_signature("/", "lifecycle=", list, 3,
                    "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    check_signature("/", "max-keys=2&prefix=J", list, 3,
                    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void times_are_written(void **state)
{
    char time[CV_SIGN_TIME];
    (void)state;
    cv_sign_time(1369353600, time);
    assert_string_equal(time, "20130524T000000Z");
    cv_sign_time(0, time);
    assert_string_equal(time, "19700101T000000Z");
    cv_sign_time(951827696, time);
    assert_string_equal(time, "20000229T123456Z");
    cv_sign_time(4107542399, time);
    assert_string_equal(time, "21000228T235959Z");
}

static void check_hash(const char *text, size_t times, const char *expected)
{
    cv_sha256 hash;
    uint8_t sum[CV_SHA256_SIZE];
    char hex[CV_SHA256_HEX];
    cv_sha256_begin(&hash);
    for (size_t i = 0; i < times; i++) cv_sha256_add(&hash, text, strlen(text));
    cv_sha256_end(&hash, sum);
    cv_sha256_hex(sum, hex);
    assert_string_equal(hex, expected);
}

static void hashes_come_out(void **state)
{
    uint8_t sum[CV_SHA256_SIZE], key[131];
    char hex[CV_SHA256_HEX];
    (void)state;
    check_hash("", 1, empty);
    check_hash("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    check_hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    check_hash("aaaaaaaaaa", 100000,
               "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    cv_hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, sum);
    cv_sha256_hex(sum, hex);
    assert_string_equal(hex,
                        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof key);
    cv_hmac_sha256(key, sizeof key, "Test Using Larger Than Block-Size Key - Hash Key First",
                   54, sum);
    cv_sha256_hex(sum, hex);
    assert_string_equal(hex,
                        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void check_value(const char *text, const char *section, const char *key,
                        const char *expected)
{
    size_t size;
    const char *value = cv_profile_value(text, strlen(text), section, key, &size);
    if (!expected) {
        assert_null(value);
        return;
    }
    assert_non_null(value);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(value, expected, size);
}

static void profiles_are_read(void **state)
{
    static const char text[] = "# comment\n[default]\nregion = eu-west-1\r\n"
                               "aws_access_key_id=A=B\n\n[profile other]\n"
                               "region=us-west-2\ns3 =\n  endpoint_url = http://nested\n"
                               "[third]\nregion=";
    (void)state;
    check_value(text, "default", "region", "eu-west-1");
    check_value(text, "default", "aws_access_key_id", "A=B");
    check_value(text, "default", "aws_secret_access_key", NULL);
    check_value(text, "other", "region", "us-west-2");
    check_value(text, "other", "endpoint_url", NULL);
    check_value(text, "third", "region", NULL);
    check_value(text, "fourth", "region", NULL);
    check_value("", "default", "region", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(amazons_examples_come_out),
        cmocka_unit_test(times_are_written),
        cmocka_unit_test(hashes_come_out),
        cmocka_unit_test(profiles_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
