/* Downloads: see files.h. */
#include "serve/files.h"

#include "serve/stream.h"

#include <fcntl.h>
#include <string.h>

static enum MHD_Result send_recording(struct request *q)
{
	const char *path = q->shown->item->about.path, *name = strrchr(path, '/');
	int fd = roots_get(&q->serve->roots, path, O_RDONLY);
	struct MHD_Response *r = NULL;
	struct buf disposition;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		if (fd >= 0)
			close(fd);
		return answer_say(q, MHD_HTTP_NOT_FOUND, "Not found", "There is no such recording here.");
	}
	r = MHD_create_response_from_fd64((uint64_t)st.st_size, fd);
	if (!r) {
		close(fd);
		return MHD_NO;
	}
	buf_init(&disposition, 1 << 16);
	serve_disposition(&disposition, name ? name + 1 : path);
	MHD_add_response_header(r, "Content-Disposition", (char *)disposition.data);
	buf_release(&disposition);
	return answer_send(q, MHD_HTTP_OK, "application/octet-stream", r);
}

enum MHD_Result files_send(struct request *q)
{
	if (q->address.place == PLACE_RECORDING && !q->shown->item->about.run)
		return send_recording(q);
	return answer_say(q, MHD_HTTP_NOT_FOUND, "Not found", "There is nothing at this address.");
}

void files_end(struct request *q)
{
	(void)q;
}
