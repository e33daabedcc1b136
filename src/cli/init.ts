import { createFiles } from "./init/create-files.ts";
import { INIT_FLAGS, readSettings } from "./init/init-settings.ts";
import { nextSteps } from "./init/next-steps.ts";
import { parseFlags } from "./arguments.ts";
import { type Command, EXIT } from "./command.ts";

export const init: Command = {
  help: `Usage: sallyport init [options]

Creates a deployment: config.yaml, users.yaml with one user, a signing key, a certificate for development,
and a .gitignore. On a terminal, asks for every value that no option sets; otherwise uses the defaults.
Overwrites nothing. Finally prints the command that starts the proxy, and curl commands to try it.

  -d, --directory DIR       where to create it (default: deployment)
      --backend URL         the backend to protect (default: http://127.0.0.1:8080)
      --host NAME           the host name that clients use (default: localhost)
      --listen ADDRESS:PORT for clients (default: 0.0.0.0:8443)
      --username NAME       the first user (default: admin)
      --password-file FILE  reads the user's password from a file; - is standard input
                            (default: asks for it, or generates and prints one)
      --for shell|systemd|kubernetes
                            default: shell; systemd adds a unit, kubernetes a kustomization with the Secrets
                            for deploy/kubernetes/sidecar
  -y, --yes                 does not ask, and uses the defaults
  -h, --help                this text`,
  async run(args, terminal) {
    const settings = await readSettings(parseFlags(args, INIT_FLAGS), terminal);
    const files = await createFiles(settings);
    terminal.out(nextSteps(settings, files));
    return EXIT.done;
  },
};
