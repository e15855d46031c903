/* The token of those who may ask: see token_file.h. */
#include "base/token_file.h"

#include "base/text.h"
#include "base/whole_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>

#define TOKEN_BYTES 32
#define TOKEN_LEAST 16
#define TOKEN_MOST 512

/* 0, or why no one must rely on it. */
static int check_rights(const char *path, struct buf *reterr)
{
	struct stat st;

	if (stat(path, &st) < 0 || !(st.st_mode & 0027))
		return 0; /* the group may read it: that may be Prometheus's */
	buf_addf(reterr, "%s: other users can read or write this token: chmod 600", path);
	return -EINVAL;
}

static int take(const char *path, char **ret, struct buf *reterr)
{
	_cleanup_(freep) char *text = NULL;
	struct text token;
	size_t len;
	int r = file_read(path, 4096, &text, &len);

	if (r == -ENOENT)
		return r;
	if (r < 0) {
		buf_addf(reterr, "%s ", path);
		file_read_why(reterr, r);
		return r;
	}
	while (len && strchr("\r\n", text[len - 1]))
		len--;
	token = text_strip((struct text){text, len});
	for (size_t i = 0; i < token.len; i++)
		if (token.p[i] <= ' ' || token.p[i] > '~')
			token.len = 0;
	if (token.len < TOKEN_LEAST || token.len > TOKEN_MOST) {
		buf_addf(reterr,
			"%s holds no token: one line of %d to %d letters and digits. Without the file tacho "
			"makes one",
			path, TOKEN_LEAST, TOKEN_MOST);
		return -EINVAL;
	}
	r = check_rights(path, reterr);
	if (r >= 0)
		*ret = strndup(token.p, token.len);
	explicit_bzero(text, len);
	return r < 0 ? r : *ret ? 0 : -ENOMEM;
}

int token_random(char out[static TOKEN_SIZE])
{
	uint8_t byte[TOKEN_BYTES];

	if (getrandom(byte, sizeof(byte), 0) != (ssize_t)sizeof(byte))
		return -EIO;
	for (size_t i = 0; i < sizeof(byte); i++)
		snprintf(out + 2 * i, 3, "%02x", byte[i]);
	explicit_bzero(byte, sizeof(byte));
	return 0;
}

/* Whole or not at all, and never in place of another's. */
static int make(const char *path)
{
	_cleanup_(freep) char *temporary = NULL;
	char text[TOKEN_SIZE + 1];
	int fd, r = token_random(text);

	if (r < 0)
		return r;
	text[2 * TOKEN_BYTES] = '\n';
	if (asprintf(&temporary, "%s.XXXXXX", path) < 0) {
		temporary = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(temporary, O_CLOEXEC); /* mode 0600 */
	if (fd < 0)
		return -errno;
	if (write(fd, text, 2 * TOKEN_BYTES + 1) != 2 * TOKEN_BYTES + 1 ||
		(link(temporary, path) < 0 && errno != EEXIST))
		r = -errno;
	close(fd);
	unlink(temporary);
	explicit_bzero(text, sizeof(text));
	return r;
}

int token_of_file(const char *path, char **ret, struct buf *reterr)
{
	int r = take(path, ret, reterr);

	if (r != -ENOENT)
		return r;
	r = make(path);
	if (r >= 0)
		r = take(path, ret, reterr);
	if (r < 0 && !reterr->len)
		buf_addf(reterr, "%s: no token can be made there: %s", path, strerror(-r));
	return r;
}
