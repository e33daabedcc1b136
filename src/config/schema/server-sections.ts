import { z } from "zod";
import { foldedName } from "../../lib/http/header-values.ts";
import { comesFromProxies } from "../../upstream/headers/header-names.ts";
import { duration, headerName, listen, network, whole } from "./fields.ts";
import { protocols, serverLimits } from "./limits.ts";
import { serverTls, TLS_CHOICES } from "./server-tls.ts";

/** The sections about Sallyport itself: `server`, `login`. */

function clientTimeouts() {
  return z
    .strictObject({
      header: duration().prefault("10s").describe("Time for the head of a request"),
      request: duration().prefault("5m").describe("Time for the whole request, including its head"),
      keepAlive: duration().prefault("65s").describe("Time until an idle connection is closed"),
    })
    .prefault({})
    .describe("Time limits for clients");
}

function drain() {
  return z
    .strictObject({
      delay: duration({ min: 0 })
        .prefault("5s")
        .describe(
          "Time during which Sallyport still serves new requests after readiness has failed",
        ),
      timeout: duration({ min: 0 })
        .prefault("20s")
        .describe("Time that running requests then have to finish"),
    })
    .prefault({})
    .describe("How Sallyport shuts down");
}

export function serverSection() {
  return z
    .strictObject(
      {
        listen: listen()
          .prefault("0.0.0.0:8443")
          .describe("Address and port for clients; port 0 means any free port"),
        tls: serverTls().describe(
          "Certificate and key; { selfSigned: true } for development; off behind a mesh that provides TLS",
        ),
        workers: whole(0, 512)
          .default(1)
          .describe("Threads that serve clients; 0 means one per core"),
        trustedProxies: z
          .array(network())
          .default([])
          .describe(
            "Networks of proxies whose X-Forwarded-* headers are trusted; X-Forwarded-For names the client",
          ),
        trustedHeaders: z
          .array(
            headerName().refine(
              (name) => comesFromProxies(foldedName(name)),
              "must be a header in which proxies report the original request or its client, such as X-Original-URI",
            ),
          )
          .default([])
          .describe(
            "Further headers that reach the backend if a trusted proxy sends them, such as X-Forwarded-Prefix; it must not take them from its clients",
          ),
        ...protocols(),
        limits: serverLimits(),
        timeouts: clientTimeouts(),
        drain: drain(),
      },
      {
        error: ({ code, input }) =>
          code === "invalid_type" && input === undefined
            ? `is missing, and server.tls has no default: ${TLS_CHOICES}`
            : undefined,
      },
    )
    .describe("The listener for clients");
}

const failures = () => whole(1, 1_000_000);

/** The default limit of an address, as a multiple of `attempts`: users behind one gateway share an address. */
const NAMES_BEHIND_AN_ADDRESS = 10;

function throttle() {
  return z
    .strictObject({
      attempts: failures()
        .default(5)
        .describe("Failures of one name from one address that lead to a ban"),
      within: duration().prefault("2m").describe("Period in which failures count"),
      ban: duration().prefault("5m").describe("Length of the ban"),
      ...sharedLimits(),
    })
    .transform(({ address, ...throttle }) => ({
      ...throttle,
      address: {
        attempts: address.attempts ?? throttle.attempts * NAMES_BEHIND_AN_ADDRESS,
        within: address.within ?? throttle.within,
        ban: address.ban ?? throttle.ban,
      },
    }))
    .prefault({})
    .describe("Slows down password guessing");
}

/** The limits that apply to several names or addresses together. */
function sharedLimits() {
  return {
    address: z
      .strictObject({
        attempts: failures()
          .exactOptional()
          .describe("Failures that lead to a ban; default: ten times throttle.attempts"),
        within: duration()
          .exactOptional()
          .describe("Period in which failures count; default: throttle.within"),
        ban: duration().exactOptional().describe("Length of the ban; default: throttle.ban"),
      })
      .prefault({})
      .describe("Limits for one address, or IPv6 /64, over all names"),
    account: z
      .strictObject({
        attempts: failures()
          .default(100)
          .describe(
            "Consecutive failures, from any address, after which an unknown address gets three attempts",
          ),
        within: duration().prefault("24h").describe("Time without a failure that resets the count"),
      })
      .prefault({})
      .describe("Limits for one name, over all addresses"),
    global: z
      .strictObject({
        attempts: failures()
          .default(300)
          .describe("Failures from addresses that are new to the name"),
        within: duration()
          .prefault("1m")
          .describe(
            "Period in which failures count; above the limit, attempts are refused for a moment",
          ),
      })
      .prefault({})
      .describe("Limits for all names and addresses together"),
  };
}

export function loginSection() {
  return z
    .strictObject({
      throttle: throttle(),
      hashing: z
        .strictObject({
          concurrency: whole(1, 64).default(2).describe("Threads that hash passwords"),
          queue: whole(0, 100_000).default(32).describe("Logins that may wait for a thread"),
        })
        .prefault({})
        .describe("Resources for checking passwords"),
    })
    .prefault({})
    .describe("POST /api/authenticate");
}
