/* Room: cli/sources. Reports damage for verify, repair and get. The library detects it. */
#include "sources/damage.h"

#include <caterva_upkeep.h>
#include <string.h>

void damage_print(FILE *stream, const char *path, int ndim, const caterva_damage *damage)
{
    const char *rest = damage->message;
    fprintf(stream, "%s: ", cli_show_place(path).text);
    if (damage->chunk >= 0) {
        char name[32];
        int size = snprintf(name, sizeof name, "chunk %lld", (long long)damage->chunk);
        bool named = strncmp(rest, name, (size_t)size) == 0;
        fprintf(stream, "%s (", name);
        for (int d = 0; d < ndim; d++)
            fprintf(stream, "%s%lld", d ? "," : "", (long long)damage->index[d]);
        fputs(named ? ")" : "): ", stream);
        rest += named ? size : 0;
    }
    fprintf(stream, "%s\n", rest);
}

void damage_put(json *j, int ndim, const caterva_damage *damage)
{
    json_begin_object(j, NULL);
    json_put_int(j, "chunk", damage->chunk);
    json_put_ints(j, "index", damage->index, damage->chunk >= 0 ? ndim : 0);
    json_put_int(j, "position", damage->position);
    json_put_text(j, "status", caterva_status_name(damage->code));
    json_put_text(j, "message", damage->message);
    json_end_object(j);
}
