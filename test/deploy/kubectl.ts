/** kubectl, without a cluster. */
import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";

/** Debian's package for it is kubernetes-client. */
const KUBECTL = "kubectl";
const run = promisify(execFile);

/** Components are known to Kustomize from 3.7; kubectl brings a newer one from 1.21. */
const OLDEST = 21;

/** Why kubectl cannot build components here; undefined when it can. */
export function whyNoKustomize(): string | undefined {
  const { stdout, error } = spawnSync(KUBECTL, ["version", "--client", "--output", "json"], {
    encoding: "utf8",
  });
  if (error !== undefined) return "there is no kubectl";
  const { minor } = (JSON.parse(stdout) as { clientVersion: { minor: string } }).clientVersion;
  return Number.parseInt(minor, 10) < OLDEST
    ? `kubectl 1.${minor} knows no components of Kustomize, 1.${OLDEST} is needed`
    : undefined;
}

/** What a command prints, run in a directory. Rejects with what kubectl says. */
export async function kubectl(args: readonly string[], directory: string): Promise<string> {
  return (await run(KUBECTL, args, { cwd: directory })).stdout;
}

/** Every manifest that a kustomization makes, as text. */
export function kustomized(directory: string): Promise<string> {
  return kubectl(["kustomize", "."], directory);
}
