import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { grpcFields, grpcFrame, grpcMessage, grpcStatusOf } from "../../core/request/grpc.ts";
import { GateError } from "../../core/request/errors.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import { fieldPairs, queryNames } from "../../lib/http/header-values.ts";
import type { Permit } from "../../core/request/permit.ts";
import type { Answer, Question } from "../request/gate.ts";
import { ambiguous } from "../request/intake.ts";
import {
  CheckRequestSchema,
  CheckResponseSchema,
  type HeaderValueOptionSchema,
  type HttpRequest,
  StatusSchema,
} from "./external-auth_pb.ts";
import { type AskedRequest, NOT_OF_THE_REQUEST } from "./decisions.ts";

/**
 * `envoy.service.auth.v3.Authorization/Check`: what Envoy's ext_authz asks over gRPC. Envoy says what the request is in a message of
 * its own, so that no field of the client can contradict it.
 */

export interface CheckOptions {
  /** Reads the request that the question is about. @throws GateError */
  readonly read: (request: AskedRequest) => GateRequest;
  /** The names of the identity headers. */
  readonly identityNames: readonly string[];
  /** Returns the headers that a backend would get from us, names and values alternating. */
  readonly headersFor: (permit: Permit) => readonly string[];
  /** Whether a header is that of the proxy itself, in lower case: about the message, the connection, or the client's address. */
  readonly isOfProxy: (name: string) => boolean;
  /** The number of header fields that are read. */
  readonly mostHeaders: number;
}

/** `HeaderValueOption.HeaderAppendAction`. */
const APPEND = 0;
const OVERWRITE = 2;
/** The status of a gRPC call that went well. */
const OK = 0;

/** A name as Envoy sends it, or that of a pseudo-header field. */
const NAME = /^:?[!#$%&'*+.^_`|~0-9a-z-]+$/;
/** Envoy sends those of HTTP/2 among the others. */
const PSEUDO_FIELDS = 8;
/** What a field may hold (RFC 9110 §5.5). */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Reads a question. One that cannot be read is denied: a failed call could let the request pass (`failure_mode_allow`).
 *
 * @param body of the call, or what is wrong with it.
 */
export function checkQuestion(body: Buffer | GateError, options: CheckOptions): Question {
  try {
    if (body instanceof GateError) throw body;
    return questionIn(body, options);
  } catch (error) {
    if (!(error instanceof GateError)) throw error;
    const fail = (): never => {
      throw error;
    };
    return { headers: {}, subject: fail, yes: fail, no: refusal };
  }
}

function questionIn(body: Buffer, options: CheckOptions): Question {
  const message = grpcMessage(body);
  if (message === undefined) throw ambiguous("framing");
  const { source, request } = decoded(message).attributes ?? {};
  const http = request?.http;
  if (http === undefined) throw ambiguous("target");
  const fields = fieldsOf(http, options.mostHeaders);
  const sent = byName(fields);
  const address = source?.address?.socketAddress?.address ?? "";
  // Otherwise the client would name itself.
  if (address === "") throw ambiguous("header");
  const rawHeaders = aboutRequest(http, fields, address);
  return {
    headers: Object.fromEntries(sent),
    subject: () => options.read({ method: http.method, target: http.path, rawHeaders }),
    yes: (permit) =>
      reply(200, OK, { httpResponse: yes(permit, sent, options), ...metadata(permit) }),
    no: refusal,
  };
}

function refusal(answer: Answer): Answer {
  return reply(answer.status, grpcStatusOf(answer.status), { httpResponse: no(answer) });
}

function decoded(message: Buffer) {
  try {
    return fromBinary(CheckRequestSchema, message);
  } catch {
    // The cause is left out: it may quote the message.
    throw ambiguous("framing");
  }
}

/**
 * Returns the header fields, names and values alternating.
 *
 * @param most the number of fields that are read.
 * @throws GateError `bad_request`, or `header_too_large`.
 */
function fieldsOf({ headers, headerMap }: HttpRequest, most: number): string[] {
  const listed = headerMap?.headers ?? [];
  const named = Object.entries(headers);
  if (listed.length > 0 && named.length > 0) throw ambiguous("header");
  if (listed.length + named.length > most + PSEUDO_FIELDS) throw new GateError("header_too_large");
  // Envoy joins several cookies of one client by commas there, which may stand in a value: which one it is cannot be told.
  if (headers["cookie"]?.includes(",") === true) throw ambiguous("header");
  const fields = [
    ...named.flatMap(([name, value]) => [name, octets(Buffer.from(value))]),
    ...listed.flatMap(({ key, value, rawValue }) => [
      key,
      octets(rawValue.length > 0 ? Buffer.from(rawValue) : Buffer.from(value)),
    ]),
  ];
  if (fields.some((text, at) => (at % 2 === 0 ? !NAME.test(text) : !VALUE.test(text)))) {
    throw ambiguous("header");
  }
  return fields;
}

/** As Node gives values: a character for each octet. */
function octets(bytes: Buffer): string {
  return bytes.toString("latin1");
}

/**
 * Returns the headers of the request, with its host and the address of its client.
 *
 * @throws GateError `bad_request` if a field says something else than the question does.
 */
function aboutRequest(http: HttpRequest, fields: readonly string[], address: string): string[] {
  const { host, scheme } = http;
  const said = new Map([
    [":method", http.method],
    [":path", http.path],
    [":authority", host],
    ["host", host],
    [":scheme", scheme],
  ]);
  const rest = host === "" ? [] : ["Host", host];
  const addresses: string[] = [];
  let hasScheme = false;
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? "";
    const value = fields[i + 1] ?? "";
    const expected = said.get(name);
    if (expected !== undefined && expected !== "" && expected !== value) throw ambiguous("header");
    hasScheme ||= name === "x-forwarded-proto";
    if (name === "x-forwarded-for") addresses.push(value);
    else if (!name.startsWith(":") && !NOT_OF_THE_REQUEST.has(name)) rest.push(name, value);
  }
  rest.push("X-Forwarded-For", [...addresses, address].join(", "));
  if (!hasScheme && scheme !== "") rest.push("X-Forwarded-Proto", scheme);
  return rest;
}

type Reply = Pick<MessageInitShape<typeof CheckResponseSchema>, "httpResponse" | "dynamicMetadata">;

/** @param status for the log. @param code not 0 if the request may not pass. */
function reply(status: number, code: number, response: Reply): Answer {
  const message = create(CheckResponseSchema, {
    ...response,
    status: create(StatusSchema, { code }),
  });
  return {
    status: 200,
    logged: status,
    headers: ["Content-Type", "application/grpc"],
    body: grpcFrame(toBinary(CheckResponseSchema, message)),
    trailers: grpcFields(OK, ""),
  };
}

/** The changes that turn the client's headers into those that a backend would get from us. */
function yes(
  permit: Permit,
  sent: ReadonlyMap<string, string>,
  { headersFor, identityNames, isOfProxy }: CheckOptions,
) {
  const wanted = byName(headersFor(permit));
  const headers = [...wanted]
    .filter(([name, value]) => !isOfProxy(name) && sent.get(name) !== value)
    .map(([name, value]) => option(name, value));
  // Envoy may be told not to show us all that the client sends.
  const gone = new Set([...sent.keys(), ...identityNames.map((name) => name.toLowerCase())]);
  const headersToRemove = [...gone].filter(
    (name) => !name.startsWith(":") && !isOfProxy(name) && !wanted.has(name),
  );
  const { request, route } = permit;
  // Envoy compares what was sent.
  const queryParametersToRemove = queryNames(
    request.query,
    route.tokenFrom?.for(request).queries ?? [],
  );
  return {
    case: "okResponse" as const,
    value: { headers, headersToRemove, queryParametersToRemove },
  };
}

function metadata({ identity }: Permit): Pick<Reply, "dynamicMetadata"> {
  if (identity === undefined) return {};
  const { subject, groups, issuer } = identity;
  return { dynamicMetadata: { subject, groups: [...groups], issuer } };
}

/** Fields that Envoy writes itself. */
const OF_MESSAGE = new Set(["content-length", "connection"]);

function no({ status, headers, body }: Answer) {
  const fields = byPairs(headers).filter(([name]) => !OF_MESSAGE.has(name));
  return {
    case: "deniedResponse" as const,
    value: {
      status: { code: status },
      headers: fields.map(([name, value]) =>
        option(name, value, name === "set-cookie" ? APPEND : OVERWRITE),
      ),
      body: String(body),
    },
  };
}

function option(
  key: string,
  value: string,
  appendAction = OVERWRITE,
): MessageInitShape<typeof HeaderValueOptionSchema> {
  return { header: { key, value: Buffer.from(value, "latin1").toString() }, appendAction };
}

/** @param fields names and values, alternating. @returns them in pairs, the names in lower case. */
function byPairs(fields: readonly string[]): [string, string][] {
  return fieldPairs(fields).map(([name, value]) => [name.toLowerCase(), value]);
}

/** Returns the value of each name, several joined into one (RFC 9110 §5.3, RFC 9113 §8.2.3). */
function byName(fields: readonly string[]): Map<string, string> {
  const values = new Map<string, string>();
  for (const [name, value] of byPairs(fields)) {
    const before = values.get(name);
    const separator = name === "cookie" ? "; " : ", ";
    values.set(name, before === undefined ? value : before + separator + value);
  }
  return values;
}
