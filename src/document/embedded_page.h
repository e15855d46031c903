/* The page as it was built from web/: made by tools/embed-page. */
#ifndef DOCUMENT_EMBEDDED_PAGE_H
#define DOCUMENT_EMBEDDED_PAGE_H

struct embedded_page {
	const char *style,
		*style_hash; /* hash: as Content-Security-Policy names what may stand in the page */
	const char *script, *script_hash; /* NULL: built without npm */
};

extern const struct embedded_page embedded_page;
#endif
