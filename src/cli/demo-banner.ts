export interface DemoFacts {
  /** `https://127.0.0.1:8443` */
  readonly url: string;
  readonly adminUrl: string;
  readonly configuration: string;
  /** File that holds the certificate, PEM. */
  readonly certificate: string;
  readonly username: string;
  readonly password: string;
}

/** What the demo says first: where everything is, and lines for another terminal. */
export function demoBanner(facts: DemoFacts): string {
  const { url, adminUrl, configuration, username, password } = facts;
  const curl = `curl -sS --cacert ${shellWord(facts.certificate)}`;
  const credentials = shellWord(JSON.stringify({ username, password }));
  const login = `${curl} -H 'Content-Type: application/json' -d ${credentials} ${url}/api/authenticate`;
  const withToken = `${curl} -H "Authorization: Bearer $TOKEN"`;
  const examples = [
    ["Log in:", `${login}; echo`],
    [
      "Keep the token of a login:",
      String.raw`TOKEN=$(${login} | sed 's/.*"token":"\([^"]*\)".*/\1/')`,
    ],
    ["Reach the backend, which is told who is asking:", `${withToken} '${url}/orders?page=2'`],
    ["The version of the API:", `${withToken} ${url}/api/v1/version; echo`],
    ["Without a token, 401:", `${curl} -i ${url}/orders; echo`],
    [`A route for a group that ${username} is not in, 403:`, `${withToken} -i ${url}/admin/; echo`],
    ["A public route:", `${curl} ${url}/public/welcome`],
    ["Server-sent events, as they happen:", `${withToken} -N '${url}/events?count=3'`],
    ["Metrics and readiness:", `curl -sS ${adminUrl}/metrics ${adminUrl}/readyz`],
  ].map(([title, line]) => `${title}\n  ${line}\n`);
  return `Sallyport stands in front of a small backend of its own.

  address        ${url}
  configuration  ${configuration}
  user           ${username}
  password       ${password}

Lines to paste into another terminal:

${examples.join("\n")}
Ctrl-C ends it, and removes what it wrote.

`;
}

/** A word that a POSIX shell takes as it is. */
function shellWord(text: string): string {
  return /^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
