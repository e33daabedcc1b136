import { join, relative, resolve } from "node:path";
import { type CreatedFile, createFiles, USUAL_PROGRAM } from "./create-files.ts";
import { INIT_FLAGS, type InitSettings, readSettings } from "./init-settings.ts";
import { parseFlags } from "../../src/cli/arguments.ts";
import { type Command, EXIT } from "../../src/cli/command.ts";
import { shellWord } from "../../src/lib/text/printable.ts";
import { installedProgram, ownCommand } from "./own-command.ts";

export const init: Command = {
  help: `Usage: sallyport init [options]

Creates a deployment: config.yaml, users.yaml with one user, a signing key, a certificate for development,
and a .gitignore. On a terminal, asks for what no option sets, but --admin-listen; otherwise uses the
defaults. Overwrites nothing. Prints the command that starts the proxy, curl commands to try it, and what listens where.

  -d, --directory DIR       where to create it (default: deployment)
      --backend URL         the backend to protect (default: http://127.0.0.1:8080)
      --host NAME           the host name that clients use (default: localhost)
      --listen ADDRESS:PORT for clients (default: 0.0.0.0:8443)
      --admin-listen ADDRESS:PORT
                            for health, metrics and the status page (default: 127.0.0.1:9464)
      --username NAME       the first user (default: admin)
      --password-file FILE  reads the user's password from a file; - is standard input
                            (default: asks for it, or generates and prints one)
      --browser yes|no      whether people sign in with a browser (default: no)
      --for shell|systemd|kubernetes
                            default: shell; systemd adds a unit that runs the installed sallyport as a user
                            of its own, kubernetes a kustomization with the Secrets for
                            deploy/kubernetes/sidecar
  -y, --yes                 does not ask, and uses the defaults
  -h, --help                this text`,
  async run(args, terminal) {
    const settings = await readSettings(parseFlags(args, INIT_FLAGS), terminal);
    const files = await createFiles(settings);
    terminal.out(nextSteps(settings, files));
    return EXIT.done;
  },
};

/** Returns the final output of `init`: how to start the proxy, commands that log in, and in a few lines what there is now. */
export function nextSteps(settings: InitSettings, files: readonly CreatedFile[]): string {
  return `${runIt(settings)}\n${useIt(settings)}\n${summary(settings, files)}`;
}

function summary(settings: InitSettings, files: readonly CreatedFile[]): string {
  const { directory, listen, adminListen, generated, username, password, runner } = settings;
  const names = files.map(({ path }) => relative(directory, path)).join(", ");
  const program = runner === "systemd" && installedProgram() === undefined;
  const shown = generated ? `, password ${password}, shown only here` : "";
  return [
    `Made in ${directory}: ${names}`,
    `User: ${username}${shown}. The certificate is self-signed: for development only`,
    ...(runner === "kubernetes"
      ? []
      : [
          `Listens: on ${listen} for clients, on ${adminListen} for health, metrics and the status page`,
        ]),
    ...(program
      ? [
          `sallyport is not installed: the unit expects it at ${USUAL_PROGRAM} (npm pack, npm install --global FILE)`,
        ]
      : []),
  ]
    .map((line) => `${line}\n`)
    .join("");
}

function runIt({ directory, runner }: InitSettings): string {
  const configuration = shellWord(join(directory, "config.yaml"));
  const lines = {
    shell: [`${ownCommand()} serve --config ${configuration}`],
    systemd: [
      `sudo systemctl link ${shellWord(resolve(directory, "sallyport.service"))}`,
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

function useIt(settings: InitSettings): string {
  const { directory, host, port, username, password, generated, browser } = settings;
  const url = `https://${host}:${port}`;
  const curl = `curl -sS --cacert ${shellWord(join(directory, "tls.crt"))}`;
  const body = String.raw`"{\"username\":\"${username}\",\"password\":\"$PASSWORD\"}"`;
  const login = `${curl} -H 'Content-Type: application/json' -d ${body} ${url}/api/authenticate`;
  if (browser) return `Open ${url}/ in a browser, and sign in as ${username}.\n`;
  return `Log in and call the backend, in another terminal:\n\n${indented([
    generated ? `PASSWORD=${password}` : "read -rs PASSWORD   # type the password",
    String.raw`TOKEN=$(${login} | sed 's/.*"token":"\([^"]*\)".*/\1/')`,
    `${curl} -H "Authorization: Bearer $TOKEN" ${url}/`,
  ])}`;
}

function indented(lines: readonly string[]): string {
  return lines.map((line) => `  ${line}\n`).join("");
}
