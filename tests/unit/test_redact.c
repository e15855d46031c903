#include "base/redact.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* '|' stands for the NUL between two arguments. */
static void assert_line(struct redact *r, const char *from, const char *to)
{
	char line[8192];
	size_t len = strlen(from), n;

	snprintf(line, sizeof(line), "%s", from);
	for (size_t i = 0; i < len; i++)
		if (from[i] == '|')
			line[i] = 0;
	n = redact_line(r, line, len, sizeof(line));
	for (size_t i = 0; i < n; i++)
		if (!line[i])
			line[i] = '|';
	line[n] = 0;
	if (strcmp(line, to) != 0)
		fail_msg("%s\nbecomes   %s\nshould be %s", from, line, to);
}

static struct redact *rules(const char *const *words, unsigned nr)
{
	struct redact *r = NULL;
	struct buf err;

	buf_init(&err, 4096);
	if (redact_new(&r, words, nr, &err) < 0)
		fail_msg("%s", (char *)err.data);
	buf_release(&err);
	return r;
}

static const char *const known[][2] = {
	/* options */
	{"app|--password=hunter2|x", "app|--password=***|x"},
	{"app|--password=two words|x", "app|--password=***|x"},
	{"app|--password|hunter2|x", "app|--password|***|x"},
	{"app|--password|two words|x", "app|--password|***|x"},
	{"app|-password|hunter2", "app|-password|***"},
	{"app|--db-password=a=b:c", "app|--db-password=***"},
	{"app|--dbPassword=x", "app|--dbPassword=***"},
	{"app|--db.passwd=x", "app|--db.passwd=***"},
	{"app|--PASSPHRASE|x", "app|--PASSPHRASE|***"},
	{"app|--token|abc|--secret|def", "app|--token|***|--secret|***"},
	{"app|--api-key|k|--api_key=k|--apiKey=k|apikey=k",
		"app|--api-key|***|--api_key=***|--apiKey=***|apikey=***"},
	{"app|--client-secret=x", "app|--client-secret=***"},
	{"app|--password|--verbose", "app|--password|--verbose"},
	{"app|--password=", "app|--password="},
	{"app|--password", "app|--password"},
	{"app|--password=a", "app|--password=***"},
	{"keytool|-storepass|changeit", "keytool|-storepass|***"},
	/* variables */
	{"env|AWS_SECRET_ACCESS_KEY=abc/def+g|AWS_SESSION_TOKEN=x|AWS_REGION=eu",
		"env|AWS_SECRET_ACCESS_KEY=***|AWS_SESSION_TOKEN=***|AWS_REGION=eu"},
	{"env|PGPASSWORD=x|MYSQL_PWD=y|PWD=/home|OLDPWD=/tmp",
		"env|PGPASSWORD=***|MYSQL_PWD=***|PWD=/home|OLDPWD=/tmp"},
	{"docker|run|-e|TOKEN=abc|-eTOKEN=abc|img", "docker|run|-e|TOKEN=***|-eTOKEN=***|img"},
	/* a shell's text */
	{"sh|-c|TOKEN=abc ./train --epochs 3", "sh|-c|TOKEN=*** ./train --epochs 3"},
	{"sh|-c|app --password hunter2 --n 3", "sh|-c|app --password *** --n 3"},
	{"sh|-c|app --password 'two words' --n 3", "sh|-c|app --password '***' --n 3"},
	{"sh|-c|app --password=\"a \\\" b\" --n 3", "sh|-c|app --password=\"***\" --n 3"},
	{"bash|-lc|curl -d '{\"password\": \"x y\", \"user\": \"me\"}' h",
		"bash|-lc|curl -d '{\"password\": \"***\", \"user\": \"me\"}' h"},
	{"bash|-c|curl -d \"{\\\"token\\\":\\\"x\\\",\\\"a\\\":1}\" h",
		"bash|-c|curl -d \"{\\\"token\\\":\\\"***\\\",\\\"a\\\":1}\" h"},
	{"daemon: --password=x --port 3", "daemon: --password=*** --port 3"}, /* a title */
	/* headers */
	{"curl|-H|Authorization: Bearer abc.def|http://h", "curl|-H|Authorization: ***|http://h"},
	{"curl|-HAuthorization: Basic abc|http://h", "curl|-HAuthorization: ***|http://h"},
	{"curl|-H|X-Api-Key: abc|h", "curl|-H|X-Api-Key: ***|h"},
	{"curl|--header=PRIVATE-TOKEN:abc|h", "curl|--header=PRIVATE-TOKEN:***|h"},
	{"curl|-b|Cookie: a=b; c=d|h", "curl|-b|Cookie: ***|h"},
	{"sh|-c|curl -H 'Authorization: token abc' h", "sh|-c|curl -H 'Authorization: ***' h"},
	{"app|bearer|abc", "app|bearer|***"},
	/* URLs */
	{"git|clone|https://me:secret@host/repo.git", "git|clone|https://me:***@host/repo.git"},
	{"git|clone|https://me@host/repo.git", "git|clone|https://me@host/repo.git"},
	{"psql|postgres://u:p/w@d@host:5432/db", "psql|postgres://u:***@host:5432/db"},
	{"redis-cli|-u|redis://:pw@h:1", "redis-cli|-u|redis://:***@h:1"},
	{"wget|http://host:8080/a@b", "wget|http://host:8080/a@b"},
	{"wget|http://h/x?token=abc", "wget|http://h/x?token=***"},
	{"wget|http://h/x?X-Amz-Signature=abc", "wget|http://h/x?X-Amz-Signature=***"},
	/* single programs */
	{"mysql|-uroot|-psecret|db", "mysql|-uroot|-p***|db"},
	{"/usr/bin/mysqldump|-psecret two|db", "/usr/bin/mysqldump|-p***|db"},
	{"mysql|-p|db", "mysql|-p|db"}, /* it asks */
	{"sh|-c|mysql -psecret db", "sh|-c|mysql -p*** db"},
	{"sudo|sshpass|-p|secret|ssh|-p|22|h", "sudo|sshpass|-p|***|ssh|-p|22|h"},
	{"ssh|-p|22|h", "ssh|-p|22|h"},
	{"curl|-u|me:secret|h", "curl|-u|me:***|h"},
	{"curl|-ume:secret|--user=a:b|--user|c:d|h", "curl|-ume:***|--user=a:***|--user|c:***|h"},
	{"curl|-u|me|h", "curl|-u|me|h"},
	{"docker|run|-p|80:80|img", "docker|run|-p|80:80|img"},
	{"openssl|rsa|-passin|pass:secret", "openssl|rsa|-passin|pass:***"},
	/* the same in a shell's text, where names are glued to its signs and values are quoted */
	{"sh|-c|curl -sS -u a:b h", "sh|-c|curl -sS -u a:*** h"},
	{"sh|-c|curl -u 'a:b c' h", "sh|-c|curl -u 'a:***' h"},
	{"sh|-c|curl -u a:'b c'd h", "sh|-c|curl -u a:*** h"},
	{"sh|-c|curl -u\"a:b\" h", "sh|-c|curl -u\"a:***\" h"},
	{"sh|-c|curl --user='a:b c' h", "sh|-c|curl --user='a:***' h"},
	{"sh|-c|\"curl\" -u a:b h", "sh|-c|\"curl\" -u a:*** h"},
	{"sh|-c|(curl -u a:b)", "sh|-c|(curl -u a:***)"},
	{"sh|-c|x=$(/usr/bin/curl -u a:b h)", "sh|-c|x=$(/usr/bin/curl -u a:*** h)"},
	{"sh|-c|true;curl -u a:b h", "sh|-c|true;curl -u a:*** h"},
	{"sh|-c|sh -c 'curl h -u a:b' && echo 'x y'", "sh|-c|sh -c 'curl h -u a:***' && echo 'x y'"},
	{"sh|-c|sh -c \"curl -u \\\"a:b c\\\" h\"", "sh|-c|sh -c \"curl -u \\\"a:***\\\" h\""},
	{"sh|-c|curl -d 'x; y' -u a:b h", "sh|-c|curl -d 'x; y' -u a:*** h"},
	{"sh|-c|curl https://h/zip -u a:b", "sh|-c|curl https://h/zip -u a:***"},
	{"curl|-fsSLu|a:b|h", "curl|-fsSLu|a:***|h"},
	{"sh|-c|mysql -u root -p'SEC RET' db", "sh|-c|mysql -u root -p*** db"},
	{"sh|-c|sshpass -p 'X Y' ssh -p 22 h; mkdir -p d", "sh|-c|sshpass -p '***' ssh -p 22 h; mkdir -p d"},
	{"sh|-c|PGPASSWORD='x y' psql -p 5432", "sh|-c|PGPASSWORD='***' psql -p 5432"},
	{"sh|-c|echo aws_secret_access_key = abc >>f", "sh|-c|echo aws_secret_access_key = *** >>f"},
	{"sh|-c|printf 'password = x y' >f", "sh|-c|printf 'password = ***' >f"},
	{"python3|-c|password = \"x y\"; go()", "python3|-c|password = \"***\"; go()"},
	{"aws|configure|set|aws_secret_access_key|abc", "aws|configure|set|aws_secret_access_key|***"},
	{"docker|login|-u|me|-p|secret|reg", "docker|login|-u|me|-p|***|reg"},
	{"sh|-c|podman login -p secret reg", "sh|-c|podman login -p *** reg"},
	{"smbclient|-U|me%secret|//h/x", "smbclient|-U|me%***|//h/x"},
	{"http|-a|me:secret|h", "http|-a|me:***|h"},
	{"rclone|--pass|secret", "rclone|--pass|***"},
	{"curl|http://h/?a=1&access_token=abc&x=1", "curl|http://h/?a=1&access_token=***&x=1"},
	{"curl|-d|user=me&password=x&n=1|h", "curl|-d|user=me&password=***&n=1|h"},
	{"git|clone|https://0123456789abcdef0123@h/x", "git|clone|https://***@h/x"},
	/* keys that are known by their look */
	{"x|ghp_0123456789abcdefghij0123456789abcdef", "x|***"},
	{"git|https://ghp_0123456789abcdefghij0123456789abcdef@github.com/x", "git|https://***@github.com/x"},
	{"x|eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc-_def", "x|***"},
	/* what holds none */
	{"train|--max-tokens|4096|--tokenizer=bert|--max_token=3|--pad-token|<pad>",
		"train|--max-tokens|4096|--tokenizer=bert|--max_token=3|--pad-token|<pad>"},
	{"app|--password-file=/etc/pw|--token-file|x|--secret-name=y",
		"app|--password-file=/etc/pw|--token-file|x|--secret-name=y"},
	{"apptainer|exec|--pwd|/work|img", "apptainer|exec|--pwd|/work|img"},
	{"ffmpeg|-pass|1|-i|a.mp4", "ffmpeg|-pass|1|-i|a.mp4"},
	{"g++|-c|token.cc|-Dns::token::x", "g++|-c|token.cc|-Dns::token::x"},
	{"make|-j8|KEY=3", "make|-j8|KEY=3"},
	{"nc|-p|8080|h", "nc|-p|8080|h"},
	{"ps|-u|root:x", "ps|-u|root:x"},
	{"tar|-u|a:b", "tar|-u|a:b"},
	{"mkdir|-p|a/b", "mkdir|-p|a/b"},
	{"psql|-p|5432|-U|root", "psql|-p|5432|-U|root"},
	{"mysql|-P|3306|-uroot", "mysql|-P|3306|-uroot"},
	{"docker|run|-p|8080|login", "docker|run|-p|8080|login"},
	{"x264|--pass|2|-o|f", "x264|--pass|2|-o|f"},
	{"sh|-c|curl h && sort -u a:b", "sh|-c|curl h && sort -u a:b"},
	{"sh|-c|curl h; tar -u a:b", "sh|-c|curl h; tar -u a:b"},
	{"awk|secret == 3 {print token}", "awk|secret == 3 {print token}"},
	{"ls|-la|/data/me@host:/x", "ls|-la|/data/me@host:/x"},
	{"sh|-c|for i in 1 2; do sleep $i; done", "sh|-c|for i in 1 2; do sleep $i; done"},
};

static void known_forms(void **state)
{
	struct redact *r = rules(NULL, 0);
	uint64_t changed = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		assert_line(r, known[i][0], known[i][1]);
		changed += strcmp(known[i][0], known[i][1]) != 0;
	}
	assert_true(redact_known(r));
	assert_int_equal(redact_lines(r), changed);
	redact_free(r);
}

static void expressions(void **state)
{
	static const char *const words[] = {"patient-[0-9]+", "--site ([a-z]+)"};
	static const char *const alone[] = {"none", "s[a-z]+"};
	static const char *const none[] = {"none"};
	struct redact *r = rules(words, 2);

	(void)state;
	assert_line(r, "app|patient-12|x/patient-3.dat|--site|north|--token=x",
		"app|***|x/***.dat|--site|***|--token=***");
	assert_int_equal(redact_nr(r), 2);
	redact_free(r);
	r = rules(alone, 2);
	assert_line(r, "app|--token=abc|secret|sesame", "app|--token=abc|***|***");
	assert_false(redact_known(r));
	redact_free(r);
	r = rules(none, 1);
	assert_line(r, "app|--token=abc", "app|--token=abc");
	assert_int_equal(redact_lines(r), 0);
	redact_free(r);
}

static void wrong_expressions(void **state)
{
	static const char *const words[] = {"(", "", "(a)\\1", "[z-a]"};
	struct redact *r;
	struct buf err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		buf_init(&err, 4096);
		assert_int_equal(redact_new(&r, words + i, 1, &err), -EINVAL);
		assert_non_null(strstr((char *)err.data, "--redact takes"));
		buf_release(&err);
	}
}

/* Whatever it is made of, it is read within its bounds (the sanitizers watch), ends within its room and takes
 * its time. */
static void any_bytes(void **state)
{
	static const char *const pieces[] = {"--password", "=", ":", " ", "\"", "'", "\\", "token", "://",
		"@", "Authorization: ", "-", "mysql", "curl", "-u", "-p", "bearer", "pass:", "eyJ", "x", "&",
		"\n", "-c", " = ", "docker login", "%", "smbclient", "-U", ";", "(", "secret_access_key",
		"--pass"};
	struct redact *r = rules(NULL, 0);
	unsigned seed = 1;
	char *line;

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		size_t n = 0, size;

		line = malloc(600);
		assert_non_null(line);
		for (unsigned k = 0; k < 40; k++) {
			const char *piece;

			seed = seed * 1103515245 + 12345;
			piece = pieces[(seed >> 16) % ARRAY_SIZE(pieces)];
			memcpy(line + n, piece, strlen(piece));
			n += strlen(piece);
			if (seed >> 29 == 0)
				line[n++] = 0;
		}
		size = n;
		line = realloc(line, n);
		assert_true(redact_line(r, line, n, size) <= size);
		free(line);
	}
	line = malloc(REDACT_LINE_MAX);
	assert_non_null(line);
	memset(line, ':', REDACT_LINE_MAX);
	assert_int_equal(redact_line(r, line, REDACT_LINE_MAX, REDACT_LINE_MAX), REDACT_LINE_MAX);
	for (size_t i = 0; i < REDACT_LINE_MAX; i++)
		line[i] = "http://a:b@"[i % 11];
	assert_true(redact_line(r, line, REDACT_LINE_MAX, REDACT_LINE_MAX) <= REDACT_LINE_MAX);
	free(line);
	redact_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_forms),
		cmocka_unit_test(expressions),
		cmocka_unit_test(wrong_expressions),
		cmocka_unit_test(any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
