import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { startProxy } from "../machine/cores.ts";
import { hasPackage } from "../machine/programs.ts";
import { AUDIENCE, ISSUER } from "../setting/tokens.ts";
import type { Peer } from "./peer.ts";
import { running } from "./running.ts";

/** Creates a peer from a typical stack on Node: a script whose packages are in the benchmark's own tree. */
export function nodeStack(
  script: string,
  title: string,
  packages: readonly string[],
  { checks }: Pick<Peer, "checks"> = { checks: "ES256" },
): Peer {
  return {
    title,
    checks,
    missing() {
      const missing = packages.filter((name) => !hasPackage(name));
      if (missing.length === 0) return undefined;
      return `not installed: ${missing.join(", ")} (npm ci --prefix bench)`;
    },
    async start({ certificate, keys }, { backend, tls, cores, http2 }) {
      const { certFile, keyFile } = certificate;
      const given = {
        backend: `http://127.0.0.1:${backend}`,
        publicKey: await readFile(keys.ES256.publicFile, "utf8"),
        issuer: ISSUER,
        audience: AUDIENCE,
        algorithm: "ES256",
        http2,
        tls: tls ? { certFile, keyFile } : undefined,
      };
      const file = join(import.meta.dirname, "../stacks", script);
      const child = startProxy(cores, process.execPath, [file, JSON.stringify(given)], {
        NODE_ENV: "production",
      });
      const listening = child.read((output) => {
        const found = /^listening (\d+)$/m.exec(output);
        return found === null ? undefined : { port: Number(found[1]) };
      });
      return running(child, listening);
    },
  };
}
