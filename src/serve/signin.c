/* The page that who has no cookie gets: its script takes the token from behind the # of the address, which
 * browsers do not send, and trades it for a cookie. The address of the root is relative, so that it works
 * behind any proxy. */
#include "serve/internal.h"

#include "document/document.h"

/* clang-format off */
static const char script[] =
	"\"use strict\";(async()=>{const t=location.hash.slice(1),s=document.getElementById(\"statu"
	"s\"),r=document.body.querySelector(\"main\").dataset.root;if(!t)return;s.textContent=\"Sig"
	"ning in.\";try{const a=await fetch(r+\"login\",{headers:{Authorization:\"Bearer \"+t},cach"
	"e:\"no-store\",credentials:\"same-origin\"});if(a.ok){location.replace(location.pathname+l"
	"ocation.search);return}}catch(e){}s.textContent=\"The token of this address is not right: "
	"take the address that tacho serve printed.\"})();";
/* clang-format on */

/* Of these bytes, as Content-Security-Policy wants it; tests/e2e/test_serve.py computes it again. */
static const char hash[] = "sha256-q8RerQSKoaZoSsOHxfOSEiWejTO8EDchFO+csIRptY0=";

const char *signin_hash(void)
{
	return hash;
}

void signin_page(unsigned depth, struct buf *out)
{
	page_served_head(out, "Sign in", "notice");
	buf_adds(out, "<main data-root=\"./");
	for (unsigned i = 0; i < depth; i++)
		buf_adds(out, "../");
	buf_addf(out,
		"\">\n<h1>Sign in</h1>\n<p id=\"status\" role=\"status\">This server shows recordings to "
		"those who "
		"have its token. Open the address that <code>tacho serve</code> printed, with all that "
		"stands "
		"behind the #.</p>\n</main>\n<script>%s</script>\n</body>\n</html>\n",
		script);
}
