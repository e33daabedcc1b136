import { once } from "node:events";
import { request as requestByHttps } from "node:https";
import { createServer } from "node:net";
import { text } from "node:stream/consumers";
import type { Configuration } from "../../config/configuration.ts";
import { errorRow } from "../../core/request/errors.ts";
import { bad, type Examined, type Finding, good, skipped, warning } from "./finding.ts";
import type { Status } from "../../core/status.ts";
import { LATE, remoteFailure } from "../../lib/text/error-code.ts";
import { illIn } from "../../server/admin/status/sections.ts";
import { askAdmin, configuredUrl, membersIn, urlAt } from "../admin-address.ts";

type Server = Configuration["server"];
type ListenAddress = Server["listen"];

/** What listens at an address; or the system's code, if nothing can. */
type Holder = "nobody" | "sallyport" | "another" | "silent" | { readonly code: string };

/** @param answers what the holder of the port answers to a question; asked if the port is taken. */
async function holderOf(
  { host, port }: ListenAddress,
  answers: () => Promise<Extract<Holder, string>>,
): Promise<Holder | undefined> {
  // Port 0 means any.
  if (port === 0) return undefined;
  const probe = createServer();
  try {
    probe.listen({ host, port });
    await once(probe, "listening");
    return "nobody";
  } catch (error) {
    const code = remoteFailure(error);
    return code === "EADDRINUSE" ? answers() : { code };
  } finally {
    probe.close();
  }
}

/** One of Sallyport's own endpoints, which requires a token in every configuration. */
const PROTECTED = "/api/v1/version";

/** Returns who answers a request without a token on a main listener. */
async function answererOf(server: Server, timeoutMs: number) {
  try {
    const response = await askMain(server, PROTECTED, { timeoutMs });
    const { id, success } = await membersIn(response);
    const challenge = response.headers["www-authenticate"]?.startsWith("Bearer ") === true;
    const envelope = typeof id === "number" && success !== undefined;
    return response.statusCode === 401 && challenge && envelope ? "sallyport" : "another";
  } catch (error) {
    return remoteFailure(error) === LATE ? "silent" : "another";
  }
}

type Question = Pick<Parameters<typeof askAdmin>[1], "timeoutMs" | "headers">;

/** Asks a main listener. Its certificate does not matter: no question contains a secret. */
function askMain({ listen, tls }: Server, path: string, question: Question) {
  const plain = tls.mode === "off";
  const url = urlAt(listen, path, plain ? "http" : "https");
  const secure = plain ? {} : { by: requestByHttps, rejectUnauthorized: false };
  return askAdmin(url, { ...question, ...secure, late: LATE });
}

/** Returns the status of `/readyz`, or the reason as text if no Sallyport responds. */
async function readiness(address: ListenAddress, timeoutMs: number): Promise<number | string> {
  if (address.port === 0) return "its port is unknown";
  try {
    const response = await askAdmin(urlAt(address, "/readyz?verbose"), { timeoutMs, late: LATE });
    const { statusCode = 0 } = response;
    const ours = /^draining: /m.test(await text(response));
    return ours && (statusCode === 200 || statusCode === 503) ? statusCode : `status ${statusCode}`;
  } catch (error) {
    return remoteFailure(error);
  }
}

/** Checks whether each port is free or in use by a Sallyport with this configuration, and whether that is ready. */
export async function checkListeners({ snapshot, timeoutMs }: Examined): Promise<Finding[]> {
  const { server, admin } = snapshot.configuration;
  const { listen, tls } = server;
  const adminPlace = admin === "off" ? undefined : admin.listen;
  const asked = adminPlace && readiness(adminPlace, timeoutMs);
  const byReadiness = async () => {
    const ready = await asked;
    return typeof ready === "number" ? "sallyport" : ready === LATE ? "silent" : "another";
  };
  // If the listener requires client certificates, we have none to present, so the admin listener decides.
  const closed = tls.mode !== "off" && tls.clientCertificates?.mode === "required";
  const [main, other] = await Promise.all([
    holderOf(listen, closed ? byReadiness : () => answererOf(server, timeoutMs)),
    adminPlace && holderOf(adminPlace, byReadiness),
  ]);
  return [
    portFinding("server.listen", listen, main, other),
    adminPlace === undefined
      ? skipped("admin is off: readiness cannot be checked")
      : portFinding("admin.listen", adminPlace, other, main),
    readyFinding(await asked),
  ];
}

/** Another program may answer at the address, or another version. */
function isStatus(answered: object): answered is Status {
  return "dependencies" in answered && "upstreams" in answered;
}

/** Says what a running Sallyport depends on that fails: the rows of its status page. */
export async function checkRunning({ snapshot, timeoutMs }: Examined): Promise<Finding[]> {
  const url = configuredUrl(snapshot.configuration, "/-/status");
  if (url === undefined || url.port === "0") return [];
  try {
    const status = await membersIn(await askAdmin(url, { timeoutMs, late: LATE }));
    if (!isStatus(status)) return [];
    const ill = illIn(status);
    if (ill.length === 0) return [good("everything that it depends on works")];
    return ill.map(({ tone, words }) =>
      (tone === "bad" ? bad : warning)(words, "its log says why"),
    );
  } catch {
    // It does not run, which the listeners have said.
    return [];
  }
}

/**
 * Asks a running Sallyport, in the way of nginx, whether an anonymous GET of / may pass: what proxies of `decisions.from` ask. The
 * answer depends on the routes.
 */
export async function checkDecisions({ snapshot, timeoutMs }: Examined): Promise<Finding[]> {
  const { decisions, server } = snapshot.configuration;
  if (decisions === undefined || !decisions.http) return [];
  const { listen, ownPath } = server;
  const path = `${ownPath}/decide`;
  if (listen.port === 0) return [skipped("its port is unknown")];
  try {
    const headers = {
      Host: "localhost",
      "X-Original-Method": "GET",
      "X-Original-URI": "/",
      "X-Forwarded-For": "192.0.2.1",
    };
    const response = await askMain(server, path, { timeoutMs, headers });
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

/** @param beside the holder of the other port: a Sallyport with this configuration would hold both. */
function portFinding(
  key: "server.listen" | "admin.listen",
  { host, port }: ListenAddress,
  holder: Holder | undefined,
  beside: Holder | undefined,
): Finding {
  const where = `${key}: ${host.includes(":") ? `[${host}]` : host}:${port}`;
  const elsewhere = `choose another with ${key}`;
  switch (holder) {
    case undefined:
      return good(`${where} uses any free port`);
    case "nobody":
      return good(`${where} is free`);
    case "another":
      return bad(`${where} is taken by another program`, elsewhere);
    case "silent":
      return bad(
        `${where} is taken by a program that does not answer`,
        `if it is Sallyport, it hangs: restart it; otherwise ${elsewhere}`,
      );
    case "sallyport":
      return beside === undefined || beside === "sallyport"
        ? good(`${where} is taken, and a Sallyport is running`)
        : bad(`${where} is taken by a Sallyport with another configuration`, elsewhere);
    default:
      return bad(
        `${where} cannot be listened on (${holder.code})`,
        "choose another address or port",
      );
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
