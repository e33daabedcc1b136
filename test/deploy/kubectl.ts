/** kubectl, without a cluster. */
import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";

/** The Debian package is kubernetes-client. */
const KUBECTL = "kubectl";
const run = promisify(execFile);

/** Kustomize supports components since 3.7; kubectl includes a newer one since 1.21. */
const OLDEST = 21;

/** Returns why kubectl cannot build components on this machine; undefined if it can. */
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

/** Runs kubectl in a directory. Returns its output; rejects with its error message. */
export async function kubectl(args: readonly string[], directory: string): Promise<string> {
  return (await run(KUBECTL, args, { cwd: directory })).stdout;
}

/** Returns all manifests of a kustomization as text. */
export function kustomized(directory: string): Promise<string> {
  return kubectl(["kustomize", "."], directory);
}
