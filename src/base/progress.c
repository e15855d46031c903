#include "base/progress.h"

progress_read_fn *progress_on_read;
