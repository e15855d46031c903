/* Where every reader reports the bytes that it has read: see progress.h. */
#include "base/progress.h"

progress_read_fn *progress_on_read;
