import type { X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";

/** The verified certificate of a client. Its parts are read when they are asked for: most requests ask for none. */
export class ClientCertificate {
  readonly x509: X509Certificate;
  #subject: string | undefined;
  #names: AltNames | undefined;
  #thumbprint: string | undefined;

  constructor(x509: X509Certificate) {
    this.x509 = x509;
  }

  /**
   * The subject in the form of RFC 4514: `CN=alice,O=Example`, the most specific part first, special characters escaped. Empty if
   * the certificate has none.
   */
  get subject(): string {
    // Node writes one part per line, from general to specific. Line breaks and plus signs inside values are escaped
    // (CVE-2021-44533), so unescaped ones are separators. A certificate without a subject has undefined.
    const lines = (this.x509.subject as string | undefined) ?? "";
    return (this.#subject ??= lines.split("\n").toReversed().join(",").replaceAll(" + ", "+"));
  }

  /** The SPIFFE ID of an X.509-SVID: its only URI, if that is a valid one of a workload. Undefined for other certificates. */
  get spiffeId(): string | undefined {
    const { uris } = this.#altNames;
    const [uri = ""] = uris;
    // A certificate with two URIs is no SVID, and neither is one that signs others (X.509-SVID §2, §5.2).
    return uris.length === 1 && !this.x509.ca && isSpiffeId(uri) ? uri : undefined;
  }

  /** The DNS names among the subject alternative names, as written there. */
  get dnsNames(): readonly string[] {
    return this.#altNames.dns;
  }

  /** The beginning of its validity, in milliseconds since the epoch. */
  get validFrom(): number {
    return this.x509.validFromDate.getTime();
  }

  /** The end of its validity, in milliseconds since the epoch. */
  get validTo(): number {
    return this.x509.validToDate.getTime();
  }

  /** The SHA-256 of its DER form in base64url, the `x5t#S256` of RFC 8705. */
  get thumbprint(): string {
    const hex = this.x509.fingerprint256.replaceAll(":", "");
    return (this.#thumbprint ??= Buffer.from(hex, "hex").toString("base64url"));
  }

  get #altNames(): AltNames {
    return (this.#names ??= altNamesIn(this.x509.subjectAltName ?? ""));
  }
}

const known = new WeakMap<TLSSocket, ClientCertificate>();

/** Returns the certificate of the client of an authorized connection, the same object each time; undefined without one. */
export function clientCertificateOf(socket: TLSSocket): ClientCertificate | undefined {
  const before = known.get(socket);
  if (before !== undefined) return before;
  const x509 = socket.getPeerX509Certificate();
  if (x509 === undefined) return undefined;
  const certificate = new ClientCertificate(x509);
  known.set(socket, certificate);
  return certificate;
}

interface AltNames {
  readonly uris: readonly string[];
  readonly dns: readonly string[];
}

const NO_NAMES: AltNames = { uris: [], dns: [] };
/** The longest list that is read, in characters. OpenSSL takes certificates of up to 100 KiB. */
const LONGEST_LIST = 32 * 1_024;

/**
 * Reads Node's text of subject alternative names: `DNS:a.example, URI:"spiffe://a/b\u002cc"`. Since CVE-2021-44532, a name with a
 * comma, a quote or a control character is a JSON string without commas, so that every comma separates two names.
 *
 * @returns no names at all for a list that is too long or has another form.
 */
function altNamesIn(text: string): AltNames {
  const uris: string[] = [];
  const dns: string[] = [];
  if (text === "" || text.length > LONGEST_LIST) return NO_NAMES;
  for (const each of text.split(", ")) {
    const colon = each.indexOf(":");
    const list = { URI: uris, DNS: dns }[each.slice(0, colon)];
    if (list === undefined) continue;
    const name = unquoted(each.slice(colon + 1));
    if (name === undefined) return NO_NAMES;
    list.push(name);
  }
  return { uris, dns };
}

function unquoted(text: string): string | undefined {
  if (!/[",]/.test(text)) return text;
  try {
    const name: unknown = JSON.parse(text);
    return typeof name === "string" ? name : undefined;
  } catch {
    return undefined;
  }
}

/** `spiffe://`, a trust domain, and the path of a workload (SPIFFE-ID §2): one spelling for each ID, without encoding. */
const SPIFFE_ID = /^spiffe:\/\/[a-z0-9._-]{1,255}(?:\/(?!\.{1,2}(?:\/|$))[A-Za-z0-9._-]+)+$/;
/** In bytes (SPIFFE-ID §2.3). */
const LONGEST_ID = 2_048;

/** Whether a text is the SPIFFE ID of a workload. */
export function isSpiffeId(text: string): boolean {
  return text.length <= LONGEST_ID && SPIFFE_ID.test(text);
}
