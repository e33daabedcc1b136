import { once } from "node:events";
import { get } from "node:http";
import { createServer } from "node:net";
import type { Configuration } from "../../config/schema.ts";
import { bad, codeOf, type Finding, type FindingGroup, good, skipped, warning } from "./finding.ts";

interface Place {
  readonly host: string;
  readonly port: number;
}

/** The ports, whether they are free or a Sallyport of ours has them, and whether that is ready. */
export async function lookAtListeners(
  { server, admin }: Configuration,
  timeoutMs: number,
): Promise<FindingGroup> {
  const adminPlace = admin === "off" ? undefined : admin.listen;
  const ready = adminPlace === undefined ? undefined : await readiness(adminPlace, timeoutMs);
  const runs = typeof ready === "number";
  const findings = [
    await portFinding("server.listen", server.listen, runs),
    adminPlace === undefined
      ? skipped("admin is off: nobody can ask whether it is ready")
      : await portFinding("admin.listen", adminPlace, runs),
    readyFinding(ready),
  ];
  return { name: "listeners", findings };
}

async function portFinding(key: string, place: Place, runs: boolean): Promise<Finding> {
  const { host, port } = place;
  const where = `${key}: ${host.includes(":") ? `[${host}]` : host}:${port}`;
  if (port === 0) return good(`${where} takes whatever is free`);
  const code = await bindingFault(place);
  if (code === undefined) return good(`${where} is free`);
  if (code !== "EADDRINUSE") {
    return bad(`${where} cannot be listened on (${code})`, "choose another address or port");
  }
  if (runs) return good(`${where} is taken, and a Sallyport is running`);
  return bad(`${where} is taken by another program`, `choose another with ${key}`);
}

/** The system's code when the address cannot be had. It is given back at once. */
async function bindingFault({ host, port }: Place): Promise<string | undefined> {
  const probe = createServer();
  try {
    probe.listen({ host, port });
    await once(probe, "listening");
    return undefined;
  } catch (error) {
    return codeOf(error);
  } finally {
    probe.close();
  }
}

/** Status of `/readyz`; a word when nobody answers as Sallyport does. */
async function readiness({ host, port }: Place, timeoutMs: number): Promise<number | string> {
  if (port === 0) return "not known where";
  const { promise, resolve } = Promise.withResolvers<number | string>();
  const loopback = new Map([
    ["0.0.0.0", "127.0.0.1"],
    ["::", "::1"],
  ]);
  const signal = AbortSignal.timeout(timeoutMs);
  const where = { host: loopback.get(host) ?? host, port, path: "/readyz", agent: false, signal };
  const asked = get(where, (response) => {
    response.destroy();
    const { statusCode = 0 } = response;
    resolve(statusCode === 200 || statusCode === 503 ? statusCode : `status ${statusCode}`);
  });
  asked.on("error", (error) => resolve(codeOf(error)));
  return promise;
}

function readyFinding(ready: number | string | undefined): Finding {
  switch (ready) {
    case undefined:
      return skipped("readiness is not known");
    case 200:
      return good("a running Sallyport is ready");
    case 503:
      return warning("a running Sallyport is not ready", "ask its /readyz?verbose");
    default:
      return skipped(`no Sallyport runs here (${ready})`);
  }
}
