/* Writing the layouts of all chunks into one place, see format/layout_area.h. */
#ifndef CV_FRAME_PUT_LAYOUTS_H
#define CV_FRAME_PUT_LAYOUTS_H

#include "frame/txn_state.h"

/* Puts them behind the chunks of a new contiguous frame, right before where its tail is going
 * to be; all chunks are put. Where chunks are so small that they are read whole, or have more
 * blocks than a record holds, there are none. */
cv_status cv_txn_put_layouts(cv_txn *txn, cv_error *err);

#endif
