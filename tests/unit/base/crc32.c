/* The checksum of zip archives: known values, and any division of the bytes gives the
 * same. */
#include "base/crc.h"

#include "check.h"

#include <string.h>

int main(void)
{
    static const char nine[] = "123456789";
    uint8_t bytes[300];
    uint32_t whole;
    CHECK(cv_crc32(0, nine, 9) == 0xcbf43926u, "%08x", cv_crc32(0, nine, 9));
    CHECK(cv_crc32(0, nine, 0) == 0, "nothing");
    for (int i = 0; i < 300; i++) bytes[i] = (uint8_t)(i * i + 7);
    whole = cv_crc32(0, bytes, sizeof bytes);
    for (size_t cut = 0; cut <= sizeof bytes; cut++) {
        uint32_t crc = cv_crc32(cv_crc32(0, bytes, cut), bytes + cut, sizeof bytes - cut);
        CHECK(crc == whole, "cut at %zu: %08x, %08x", cut, crc, whole);
    }
    return 0;
}
