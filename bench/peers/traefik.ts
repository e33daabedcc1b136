import { setTimeout as delay } from "node:timers/promises";
import type { Child } from "../machine/children.ts";
import { startProxy } from "../machine/cores.ts";
import { accepting, freePort } from "../machine/ports.ts";
import { missingPrograms, needProgram } from "../machine/programs.ts";
import { ask } from "../scenarios/ask.ts";
import type { Peer } from "./peer.ts";
import { running } from "./running.ts";

/** Traefik with one thread for Go code. */
export const traefik: Peer = {
  title: "Traefik, no authentication",
  checks: undefined,
  missing: () => missingPrograms("traefik"),
  async start(setting, { backend, tls, cores, http2 }) {
    const port = await freePort();
    const { certFile, keyFile } = setting.certificate;
    const scheme = http2 === "both" ? "h2c" : "http";
    const encryption = `
      tls: {}
tls:
  options: { default: { minVersion: VersionTLS13 } }
  certificates: [{ certFile: ${certFile}, keyFile: ${keyFile} }]`;
    const routes = await setting.write(
      `traefik-routes-${port}.yaml`,
      `http:
  services:
    app: { loadBalancer: { servers: [{ url: "${scheme}://127.0.0.1:${backend}" }] } }
  routers:
    app:
      rule: PathPrefix(\`/\`)
      service: app${tls ? encryption : ""}
`,
    );
    const file = await setting.write(
      `traefik-${port}.yaml`,
      `global: { checkNewVersion: false, sendAnonymousUsage: false }
log: { level: ERROR }
entryPoints: { web: { address: "127.0.0.1:${port}" } }
providers: { file: { filename: ${routes} } }
`,
    );
    const child = startProxy(cores, needProgram("traefik"), [`--configFile=${file}`], {
      GOMAXPROCS: "1",
    });
    return running(child, routing(port, tls ? setting.certificate.pem : undefined, child));
  },
};

/** Resolves with the port once it has read its routes. Until then, it accepts connections, but has no certificate and answers 404. */
async function routing(
  port: number,
  ca: string | undefined,
  child: Child,
): Promise<{ readonly port: number }> {
  await accepting(port, child);
  const deadline = performance.now() + 10_000;
  for (;;) {
    const status = await ask({ port, ca, path: "/" }).then(
      (reply) => reply.status,
      () => 404,
    );
    if (status !== 404) return { port };
    if (performance.now() > deadline) throw new Error("Traefik has read no routes");
    await delay(20);
  }
}
