/* What is downloaded: recordings, reports, exports, the small curves of the list. */
#ifndef SERVE_FILES_H
#define SERVE_FILES_H

#include "serve/internal.h"

enum MHD_Result files_send(struct request *q);
void files_end(struct request *q); /* under the lock */
#endif
