/* The token of those who may ask a server: a file of the user's. */
#ifndef BASE_TOKEN_FILE_H
#define BASE_TOKEN_FILE_H

#include "base/buf.h"

/* The text of the file without the end of its line. It is made with random bytes when there is none; a file
 * that others can read or write is refused. */
int token_of_file(const char *path, char **ret, struct buf *reterr);
/* A new one of random letters: 64 digits. */
#define TOKEN_SIZE 65
int token_random(char out[static TOKEN_SIZE]);
#endif
