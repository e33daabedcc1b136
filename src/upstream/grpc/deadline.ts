import { GateError } from "../../core/request/errors.ts";
import { grpcTypeOf } from "../../core/request/grpc.ts";
import { headerValues } from "../../lib/http/header-values.ts";
import type { ForwardingSettings, PermittedRequest } from "../http/permitted-request.ts";
import { breakOff } from "./break-off.ts";

const TIMEOUT = /^(\d{1,8})([HMSmun])$/;
const MILLISECONDS: Readonly<Record<string, number>> = {
  ...{ H: 3_600_000, M: 60_000, S: 1_000 },
  ...{ m: 1, u: 0.001, n: 0.000_001 },
};
/** The longest delay of a Node timer. */
const LONGEST_MS = 2 ** 31 - 1;

/** The time that a call of gRPC may take, in milliseconds; undefined if it may take any. */
function timeoutOf(method: string, rawHeaders: readonly string[]): number | undefined {
  const [type] = headerValues(rawHeaders, "content-type");
  if (grpcTypeOf(method, type) === undefined) return undefined;
  const [, amount = "", unit = ""] =
    TIMEOUT.exec(headerValues(rawHeaders, "grpc-timeout")[0] ?? "") ?? [];
  const factor = MILLISECONDS[unit];
  return factor === undefined ? undefined : Number(amount) * factor;
}

/**
 * Ends a call of gRPC at its deadline (`grpc-timeout`), also while it waits for a connection. The backend is told when the
 * answer to the client is out.
 *
 * @returns what resolves and rejects like `Forwarder.forward`.
 */
export function withinDeadline(
  forwarded: Promise<void>,
  { permit, upstream, response, transfer }: PermittedRequest,
  { observer }: Pick<ForwardingSettings, "observer">,
): Promise<void> {
  const ms = timeoutOf(permit.request.method, permit.request.rawHeaders);
  if (ms === undefined) return forwarded;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(
    () => {
      if (response.writableEnded || response.destroyed) return;
      const error = new GateError("response_timeout", { reason: "response_timeout" });
      observer.upstreamFailed(upstream.name, "response_timeout");
      transfer.abortReason = "response_timeout";
      if (response.headersSent) breakOff(response, error);
      else reject(error);
    },
    Math.min(ms, LONGEST_MS),
  );
  forwarded.finally(() => clearTimeout(timer)).then(resolve, reject);
  return promise;
}
