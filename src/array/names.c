/* Room: array. Names and versions. */
#include "codec/spec.h"

const char *caterva_version(void) { return CATERVA_VERSION_STRING; }
const char *caterva_codec_version(void) { return cv_codec_engine_version(); }

const char *caterva_codec_name(int codec) { return cv_codec_name(codec); }
int caterva_codec_number(const char *name) { return cv_codec_number(name); }
const char *caterva_filter_name(int filter) { return cv_filter_name(filter); }
int caterva_filter_number(const char *name) { return cv_filter_number(name); }

const char *caterva_status_name(caterva_status status)
{
    switch (status) {
    case CATERVA_OK: return "CATERVA_OK";
    case CATERVA_EINVAL: return "CATERVA_EINVAL";
    case CATERVA_ENOMEM: return "CATERVA_ENOMEM";
    case CATERVA_EIO: return "CATERVA_EIO";
    case CATERVA_ECORRUPT: return "CATERVA_ECORRUPT";
    case CATERVA_EUNSUPPORTED: return "CATERVA_EUNSUPPORTED";
    case CATERVA_EBUSY: return "CATERVA_EBUSY";
    case CATERVA_EEXIST: return "CATERVA_EEXIST";
    case CATERVA_ENOTFOUND: return "CATERVA_ENOTFOUND";
    case CATERVA_ESTOPPED: return "CATERVA_ESTOPPED";
    case CATERVA_ESHORT: return "CATERVA_ESHORT";
    case CATERVA_EREADONLY: return "CATERVA_EREADONLY";
    case CATERVA_ERANGE: return "CATERVA_ERANGE";
    case CATERVA_EDTYPE: return "CATERVA_EDTYPE";
    case CATERVA_ECAST: return "CATERVA_ECAST";
    case CATERVA_ESHAPE: return "CATERVA_ESHAPE";
    case CATERVA_EROLLBACK: return "CATERVA_EROLLBACK";
    case CATERVA_ESTALE: return "CATERVA_ESTALE";
    case CATERVA_EPIPELINE: return "CATERVA_EPIPELINE";
    }
    return "unknown status";
}
