import { once } from "node:events";
import type { IncomingMessage, RequestOptions } from "node:http";
import { get as getByHttps } from "node:https";
import { createServer } from "node:net";
import { text } from "node:stream/consumers";
import { errorRow } from "../../core/request/errors.ts";
import { bad, type Examined, type Finding, good, skipped, warning } from "./finding.ts";
import { get } from "../../lib/http/node-http.ts";
import type { Dependency } from "../../core/status.ts";
import { remoteFailure } from "../../lib/text/error-code.ts";
import { isJsonObject } from "../../lib/text/strict-json.ts";
import { askAdmin, configuredUrl, membersIn } from "../admin-address.ts";

interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * What listens on a port: nothing, a Sallyport, or another program. `none can` means that the address is unavailable,
 * with the system's code.
 */
type Holder =
  | { readonly kind: "nobody" | "sallyport" | "other" }
  | { readonly kind: "none can"; readonly code: string };

/** @param isSallyport called if the port is taken. */
async function holderOf(
  address: ListenAddress,
  isSallyport: () => boolean | Promise<boolean>,
): Promise<Holder> {
  const code = await bindError(address);
  if (code === undefined) return { kind: "nobody" };
  if (code !== "EADDRINUSE") return { kind: "none can", code };
  return { kind: (await isSallyport()) ? "sallyport" : "other" };
}

/** Returns the system's code if the address is not available. Otherwise releases the address at once. */
async function bindError({ host, port }: ListenAddress): Promise<string | undefined> {
  const probe = createServer();
  try {
    probe.listen({ host, port });
    await once(probe, "listening");
    return undefined;
  } catch (error) {
    return remoteFailure(error);
  } finally {
    probe.close();
  }
}

/** One of Sallyport's own endpoints, which requires a token in every configuration. */
const PROTECTED = "/api/v1/version";

/** Reports whether a main listener responds to a request without a token as Sallyport does. */
async function servesAsSallyport(
  address: ListenAddress,
  tls: boolean,
  timeoutMs: number,
): Promise<boolean> {
  try {
    // The certificate does not matter: the request contains no secret.
    const requested = { ...options(address, PROTECTED, timeoutMs), rejectUnauthorized: false };
    const response = await answer((tls ? getByHttps : get)(requested));
    const envelope: unknown = JSON.parse(await text(response));
    const challenge = response.headers["www-authenticate"]?.startsWith("Bearer ") === true;
    return response.statusCode === 401 && challenge && isEnvelope(envelope);
  } catch {
    return false;
  }
}

function isEnvelope(answered: unknown): boolean {
  if (typeof answered !== "object" || answered === null) return false;
  return "id" in answered && typeof answered.id === "number" && "success" in answered;
}

/** Returns the status of `/readyz`, or the reason as text if no Sallyport responds. */
async function readiness(address: ListenAddress, timeoutMs: number): Promise<number | string> {
  if (address.port === 0) return "its port is unknown";
  try {
    const response = await answer(get(options(address, "/readyz?verbose", timeoutMs)));
    const { statusCode = 0 } = response;
    const ours = /^draining: /m.test(await text(response));
    return ours && (statusCode === 200 || statusCode === 503) ? statusCode : `status ${statusCode}`;
  } catch (error) {
    return remoteFailure(error);
  }
}

const LOOPBACK = new Map([
  ["0.0.0.0", "127.0.0.1"],
  ["::", "::1"],
]);

function options({ host, port }: ListenAddress, path: string, timeoutMs: number): RequestOptions {
  const signal = AbortSignal.timeout(timeoutMs);
  return { host: LOOPBACK.get(host) ?? host, port, path, agent: false, signal };
}

async function answer(requested: ReturnType<typeof get>): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  requested.on("response", resolve).on("error", reject);
  return promise;
}

type Key = "server.listen" | "admin.listen";

/** Checks whether each port is free or in use by a Sallyport with this configuration, and whether that is ready. */
export async function checkListeners({ snapshot, timeoutMs }: Examined): Promise<Finding[]> {
  const { server, admin } = snapshot.configuration;
  const { listen, tls } = server;
  const adminPlace = admin === "off" ? undefined : admin.listen;
  const ready = adminPlace === undefined ? undefined : await readiness(adminPlace, timeoutMs);
  const runs = typeof ready === "number";
  // If the listener requires client certificates, we have none to present, so the admin listener decides.
  const closed = tls.mode !== "off" && tls.clientCertificates?.mode === "required";
  const [main, other] = await Promise.all([
    holderUnlessAny(listen, () =>
      closed ? runs : servesAsSallyport(listen, tls.mode !== "off", timeoutMs),
    ),
    adminPlace && holderUnlessAny(adminPlace, () => runs),
  ]);
  return [
    portFinding("server.listen", listen, main, other),
    adminPlace === undefined
      ? skipped("admin is off: readiness cannot be checked")
      : portFinding("admin.listen", adminPlace, other, main),
    readyFinding(ready),
  ];
}

/** Says what a running Sallyport depends on that fails: the rows of its status page. */
export async function checkRunning({ snapshot, timeoutMs }: Examined): Promise<Finding[]> {
  const url = configuredUrl(snapshot.configuration, "/-/status");
  if (url === undefined || url.port === "0") return [];
  try {
    const { dependencies } = await membersIn(await askAdmin(url, { timeoutMs, late: "no answer" }));
    const rows = Array.isArray(dependencies) ? dependencies.filter(isDependency) : [];
    const ill = rows.filter(({ state }) => state !== "good");
    if (ill.length === 0)
      return rows.length === 0 ? [] : [good("everything that it depends on works")];
    return ill.map(({ kind, name, state, words }) =>
      (state === "bad" ? bad : warning)(`${kind} ${name}: ${words}`, "its log says why"),
    );
  } catch {
    // It does not run, which the listeners have said.
    return [];
  }
}

function isDependency(row: unknown): row is Dependency {
  return (
    isJsonObject(row) &&
    ["kind", "name", "state", "words"].every((key) => typeof row[key] === "string")
  );
}

/**
 * Asks a running Sallyport, in the way of nginx, whether an anonymous GET of / may pass: what proxies of `decisions.from` ask. The
 * answer depends on the routes.
 */
export async function checkDecisions({ snapshot, timeoutMs }: Examined): Promise<Finding[]> {
  const { decisions, server } = snapshot.configuration;
  if (decisions === undefined || !decisions.http) return [];
  const { listen, tls, ownPath } = server;
  const path = `${ownPath}/decide`;
  if (listen.port === 0) return [skipped("its port is unknown")];
  try {
    const headers = {
      Host: "localhost",
      "X-Original-Method": "GET",
      "X-Original-URI": "/",
      "X-Forwarded-For": "192.0.2.1",
    };
    const asked = { ...options(listen, path, timeoutMs), headers, rejectUnauthorized: false };
    const response = await answer((tls.mode === "off" ? get : getByHttps)(asked));
    const body = await text(response);
    return [decisionFinding(response.statusCode ?? 0, body.includes(NOT_FROM_HERE), path)];
  } catch (error) {
    return [skipped(`no Sallyport answers here (${remoteFailure(error)})`)];
  }
}

const NOT_FROM_HERE = errorRow("network_denied").message;

function decisionFinding(status: number, isStranger: boolean, path: string): Finding {
  if (status === 403 && isStranger) {
    return skipped("this machine may not ask: decisions.from does not name its address");
  }
  if ([200, 303, 401, 403, 404, 429].includes(status)) {
    return good(`a question about an anonymous GET of / is answered: ${status}`);
  }
  return bad(
    `a question about an anonymous GET of / got ${status}`,
    `does ${path} reach this one?`,
  );
}

/** Returns undefined for port 0, which means any port. */
async function holderUnlessAny(
  address: ListenAddress,
  isSallyport: () => boolean | Promise<boolean>,
): Promise<Holder | undefined> {
  return address.port === 0 ? undefined : holderOf(address, isSallyport);
}

/** @param beside the holder of the other port: a Sallyport with this configuration would hold both. */
function portFinding(
  key: Key,
  { host, port }: ListenAddress,
  holder: Holder | undefined,
  beside: Holder | undefined,
): Finding {
  const where = `${key}: ${host.includes(":") ? `[${host}]` : host}:${port}`;
  const elsewhere = `choose another with ${key}`;
  switch (holder?.kind) {
    case undefined:
      return good(`${where} uses any free port`);
    case "nobody":
      return good(`${where} is free`);
    case "other":
      return bad(`${where} is taken by another program`, elsewhere);
    case "none can":
      return bad(
        `${where} cannot be listened on (${holder.code})`,
        "choose another address or port",
      );
    case "sallyport":
      return beside === undefined || beside.kind === "sallyport"
        ? good(`${where} is taken, and a Sallyport is running`)
        : bad(`${where} is taken by a Sallyport with another configuration`, elsewhere);
  }
}

function readyFinding(ready: number | string | undefined): Finding {
  switch (ready) {
    case undefined:
      return skipped("readiness is unknown");
    case 200:
      return good("a running Sallyport is ready");
    case 503:
      return warning("a running Sallyport is not ready", "its /readyz?verbose shows why");
    default:
      return skipped(`no Sallyport runs here (${ready})`);
  }
}
