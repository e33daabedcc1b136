import type { TargetOrigin } from "../pool/target-origin.ts";
import type { BackendQuery, ShortAnswer } from "../http2/query.ts";

/**
 * The request and the response of grpc.health.v1 (github.com/grpc/grpc, doc/health-checking.md). Each message has
 * one field, so a protobuf library would be larger than this code.
 */

/** HealthCheckRequest: field 1, the name of the service. HealthCheckResponse: field 1, the status, where 1 is SERVING. */
const SERVICE_FIELD = 0x0a;
const STATUS_FIELD = 0x08;
const SERVING = 1;
const PREFIX_BYTES = 5;

/** Creates the request of a health check. @param service its name, up to 127 bytes; empty for the entire server. */
export function healthQuery({ authority }: TargetOrigin, service: string): BackendQuery {
  const name = Buffer.from(service);
  const message =
    name.length === 0 ? name : Buffer.concat([Buffer.from([SERVICE_FIELD, name.length]), name]);
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(message.length, 1);
  const headers = [
    "Host",
    authority,
    "User-Agent",
    "sallyport-probe",
    "Content-Type",
    "application/grpc",
  ];
  const path = "/grpc.health.v1.Health/Check";
  return { method: "POST", path, headers, body: Buffer.concat([prefix, message]) };
}

/** Returns why the service is not healthy; undefined if it is. */
export function healthFault({ status, headers, trailers, body }: ShortAnswer): string | undefined {
  if (status !== 200) return `health check: ${status}`;
  const code = String(trailers["grpc-status"] ?? headers["grpc-status"]);
  if (code !== "0") return `health check: grpc-status ${/^\d{1,3}$/.test(code) ? code : "missing"}`;
  const message = body.subarray(PREFIX_BYTES);
  const serving = body[0] === 0 && message[0] === STATUS_FIELD && message[1] === SERVING;
  return serving ? undefined : "health check: not serving";
}
