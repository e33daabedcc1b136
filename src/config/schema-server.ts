import { z } from "zod";
import { duration, filePath, listen, network, size, sizeOrUnlimited } from "./fields.ts";

/** The sections about Sallyport itself: `server`, `admin`, `login`, `log`. */

const TLS_CHOICES =
  "give { certFile, keyFile }, or { selfSigned: true } for development, or off behind a mesh that does TLS";

type ServerTls =
  | {
      readonly mode: "files";
      readonly certFile: string;
      readonly keyFile: string;
      readonly minVersion: "TLSv1.2" | "TLSv1.3";
    }
  | { readonly mode: "selfSigned" }
  | { readonly mode: "off" };

function serverTls(directory: string) {
  const mapping = z
    .strictObject({
      certFile: filePath(directory)
        .exactOptional()
        .describe("Certificate chain, PEM; read at start"),
      keyFile: filePath(directory).exactOptional().describe("Private key, PEM; read at start"),
      minVersion: z
        .enum(["TLSv1.2", "TLSv1.3"])
        .exactOptional()
        .describe("The oldest TLS version that is accepted; TLSv1.2 when left out"),
      selfSigned: z
        .boolean()
        .exactOptional()
        .describe("A certificate made at start, for development only"),
    })
    .transform((tls, context): ServerTls => {
      const { certFile, keyFile, minVersion = "TLSv1.2", selfSigned = false } = tls;
      const named = certFile ?? keyFile ?? tls.minVersion;
      if (selfSigned && named === undefined) return { mode: "selfSigned" };
      if (!selfSigned && certFile !== undefined && keyFile !== undefined) {
        return { mode: "files", certFile, keyFile, minVersion };
      }
      const message = selfSigned
        ? "has files or a version beside selfSigned: choose one"
        : `is not complete: ${TLS_CHOICES}`;
      context.issues.push({ code: "custom", message, input: tls });
      return z.NEVER;
    });
  const off = z.literal("off").transform((): ServerTls => ({ mode: "off" }));
  return z.union([mapping, off], {
    error: ({ input }) =>
      input === undefined ? `is missing: ${TLS_CHOICES}` : `is not valid: ${TLS_CHOICES}`,
  });
}

export function serverSection(directory: string) {
  return z
    .strictObject(
      {
        listen: listen()
          .prefault("0.0.0.0:8443")
          .describe("Address and port for clients; port 0 takes a free one"),
        tls: serverTls(directory).describe(
          "Certificate and key, or { selfSigned: true } for development, or off behind a mesh that does TLS",
        ),
        workers: z
          .int()
          .min(0)
          .max(512)
          .default(1)
          .describe("Threads that accept on the port; 0 is one per core"),
        trustedProxies: z
          .array(network())
          .default([])
          .describe("Networks whose X-Forwarded-* headers are believed"),
        limits: z
          .strictObject({
            headerBytes: size({ min: 1024, max: 1024 ** 2 })
              .prefault("16KiB")
              .describe("The largest head of a request"),
            bodyBytes: sizeOrUnlimited()
              .prefault("10MiB")
              .describe("The largest body of a request, or unlimited"),
            connections: z
              .int()
              .min(1)
              .max(1_000_000)
              .default(10_000)
              .describe("Open connections of clients"),
          })
          .prefault({})
          .describe("What a client may ask for at most"),
        timeouts: z
          .strictObject({
            header: duration().prefault("10s").describe("Until the head of a request has arrived"),
            request: duration().prefault("5m").describe("Until the whole request has arrived"),
            keepAlive: duration()
              .prefault("65s")
              .describe("How long an idle connection stays open"),
          })
          .prefault({})
          .describe("How long a client may take"),
        drain: z
          .strictObject({
            delay: duration({ min: 0 })
              .prefault("5s")
              .describe("How long new requests are still served after readiness has failed"),
            timeout: duration({ min: 0 })
              .prefault("20s")
              .describe("How long what runs may go on after that"),
          })
          .prefault({})
          .describe("How Sallyport stops"),
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

export function adminSection() {
  const mapping = z.strictObject({
    listen: listen()
      .prefault("0.0.0.0:9464")
      .describe("Address and port of /metrics, /livez and /readyz"),
  });
  return z
    .union([mapping, z.literal("off")], { error: "must be { listen: address } or off" })
    .prefault({})
    .describe("Metrics and health over plain HTTP on a port of their own, or off");
}

export function loginSection() {
  return z
    .strictObject({
      throttle: z
        .strictObject({
          attempts: z.int().min(1).max(1_000_000).default(5).describe("Failures that are allowed"),
          within: duration().prefault("2m").describe("The time in which they are counted"),
          ban: duration().prefault("5m").describe("How long further attempts are refused"),
        })
        .prefault({})
        .describe("Slows the guessing of passwords"),
      hashing: z
        .strictObject({
          concurrency: z.int().min(1).max(64).default(2).describe("Threads that hash passwords"),
          queue: z.int().min(0).max(100_000).default(32).describe("Logins that may wait for them"),
        })
        .prefault({})
        .describe("What checking passwords may cost"),
    })
    .prefault({})
    .describe("POST /api/authenticate");
}

export function logSection() {
  return z
    .strictObject({
      level: z
        .enum(["debug", "info", "warn", "error"])
        .default("info")
        .describe("The least that is written"),
      format: z
        .enum(["json", "pretty", "auto"])
        .default("auto")
        .describe("auto is pretty on a terminal and json elsewhere"),
    })
    .prefault({})
    .describe("The log on standard output");
}
