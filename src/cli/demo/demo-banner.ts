import { shellWord } from "../../lib/text/shell-word.ts";

export interface DemoFacts {
  /** `https://127.0.0.1:8443` */
  readonly url: string;
  readonly adminUrl: string;
  readonly configuration: string;
  /** Path of the certificate file, PEM. */
  readonly certificate: string;
  readonly username: string;
  readonly password: string;
  /** Whether the terminal shows titles in bold. */
  readonly color: boolean;
}

/**
 * Returns the first output of the demo: addresses, files and the password, and commands to paste into another terminal,
 * each short enough for one or two rows.
 */
export function demoBanner(facts: DemoFacts): string {
  const { url, adminUrl, configuration, username, password, color } = facts;
  const bold = (title: string): string => (color ? `\u001B[1m${title}\u001B[22m` : title);
  const credentials = shellWord(JSON.stringify({ username, password }));
  const ask = `curl -sS --cacert ${shellWord(facts.certificate)} "$@"`;
  const login = `ask -H 'Content-Type: application/json' -d ${credentials} ${url}/api/authenticate`;
  const withToken = `ask -H "Authorization: Bearer $TOKEN"`;
  const examples = [
    ["Define these first:", `ask() { ${ask}; }; login() { ${login}; }`],
    ["Log in:", "login; echo"],
    [
      "Log in and keep the token:",
      String.raw`TOKEN=$(login | sed 's/.*"token":"\([^"]*\)".*/\1/')`,
    ],
    ["Call the backend, which gets your identity:", `${withToken} '${url}/orders?page=2'`],
    ["The version of the API:", `${withToken} ${url}/api/v1/version; echo`],
    ["Without a token, 401:", `ask -i ${url}/orders; echo`],
    [`A route for a group that ${username} is not in, 403:`, `${withToken} -i ${url}/admin/; echo`],
    ["A public route:", `ask ${url}/public/welcome`],
    ["Server-sent events, as they happen:", `${withToken} -N '${url}/events?count=3'`],
    ["Check whether it is ready:", `curl -sS ${adminUrl}/readyz; echo`],
  ].map(([title = "", line = ""]) => `${bold(title)}\n  ${line}\n`);
  return `${bold("Sallyport runs in front of a small demo backend.")}

  address        ${url}
  metrics        ${adminUrl}/metrics
  configuration  ${configuration}
  user           ${username}
  password       ${password}

Lines to paste into another terminal:

${examples.join("\n")}
Ctrl-C ends the demo and removes its files.

`;
}
