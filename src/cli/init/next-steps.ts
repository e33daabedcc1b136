import { join } from "node:path";
import { shellWord } from "../../lib/text/shell-word.ts";
import type { CreatedFile } from "./create-files.ts";
import { ownCommand } from "./own-command.ts";
import type { InitSettings } from "./init-settings.ts";

/**
 * Returns the final output of `init`: the files, how to start the proxy, and commands that log in and call the backend.
 */
export function nextSteps(settings: InitSettings, files: readonly CreatedFile[]): string {
  const width = Math.max(...files.map(({ path }) => path.length));
  const created = files.map(({ path, about }) => `  ${path.padEnd(width)}  ${about}\n`).join("");
  const { generated, username, password } = settings;
  const shown = generated ? `\nPassword of ${username}, shown only here:\n\n  ${password}\n` : "";
  return `Created:\n\n${created}${shown}\n${runIt(settings)}\n${useIt(settings)}`;
}

function runIt({ directory, runner }: InitSettings): string {
  const configuration = shellWord(join(directory, "config.yaml"));
  const lines = {
    shell: [`${ownCommand()} serve --config ${configuration}`],
    systemd: [
      `sudo systemctl link "$PWD/${join(directory, "sallyport.service")}"`,
      "sudo systemctl enable --now sallyport",
    ],
    kubernetes: [
      `kubectl apply -k ${shellWord(directory)}`,
      "# then label your Deployment and Service with sallyport: inject, and add the component:",
      "#   components: [deploy/kubernetes/sidecar]",
    ],
  }[runner];
  return `Run it:\n\n${indented(lines)}`;
}

function useIt({ directory, host, port, username, password, generated }: InitSettings): string {
  const url = `https://${host}:${port}`;
  const curl = `curl -sS --cacert ${shellWord(join(directory, "tls.crt"))}`;
  const body = String.raw`"{\"username\":\"${username}\",\"password\":\"$PASSWORD\"}"`;
  const login = `${curl} -H 'Content-Type: application/json' -d ${body} ${url}/api/authenticate`;
  return `Log in and call the backend, in another terminal:\n\n${indented([
    generated ? `PASSWORD=${password}` : "read -rs PASSWORD   # type the password",
    String.raw`TOKEN=$(${login} | sed 's/.*"token":"\([^"]*\)".*/\1/')`,
    `${curl} -H "Authorization: Bearer $TOKEN" ${url}/`,
  ])}`;
}

function indented(lines: readonly string[]): string {
  return lines.map((line) => `  ${line}\n`).join("");
}
