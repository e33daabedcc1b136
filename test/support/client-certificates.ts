import { createPublicKey } from "node:crypto";
import { generate } from "selfsigned";

/** A client certificate with its key, PEM. */
interface ClientCertificate {
  readonly key: string;
  readonly cert: string;
}

interface Attribute {
  readonly shortName: string;
  readonly value: string;
}

type Days = readonly [from: number, to: number];

interface Making {
  readonly subject?: readonly Attribute[];
  /** The extended key usage; client authentication by default. */
  readonly usage?: "clientAuth" | "serverAuth";
  /** The validity, in days from now. */
  readonly days?: Days;
  /** Subject alternative names: `URI:…`, `DNS:…`, `IP:…`. */
  readonly altNames?: readonly string[];
}

export interface ClientAuthority {
  /** PEM. */
  readonly cert: string;
  /** Issues a certificate; for ALICE_SUBJECT by default. */
  certificate(making?: Making): Promise<ClientCertificate>;
  /** Issues the certificate of another authority. @param keyOf an authority whose key it has; default: one of its own. */
  subordinate(name: string, keyOf?: ClientAuthority): Promise<ClientAuthority>;
  /** PEM. */
  readonly key: string;
}

const VALID: Days = [-1, 30];

/** `O=Example,OU=sales,CN=alice`, from the most general attribute to the most specific. */
export const ALICE_SUBJECT: readonly Attribute[] = [
  { shortName: "O", value: "Example" },
  { shortName: "OU", value: "sales" },
  { shortName: "CN", value: "alice" },
];

/**
 * Creates an authority that issues client certificates.
 *
 * @param days its own validity, in days from now.
 * @param saysSo whether it says that it is one (basicConstraints). Old ones do not.
 */
export async function clientAuthority(
  name = "Sallyport clients",
  days: Days = [-1, 365],
  saysSo = true,
): Promise<ClientAuthority> {
  const authority = await generate([{ name: "commonName", value: name }], {
    keyType: "ec",
    algorithm: "sha256",
    ...validity(days),
    extensions: [
      ...(saysSo ? [{ name: "basicConstraints", cA: true, critical: true } as const] : []),
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  return issuing(authority.cert, authority.private);
}

function issuing(cert: string, key: string): ClientAuthority {
  const ca = { key, cert };
  return {
    cert,
    key,
    async subordinate(name, keyOf) {
      const made = await generate([{ name: "commonName", value: name }], {
        keyType: "ec",
        ...(keyOf && { keyPair: pairOf(keyOf) }),
        algorithm: "sha256",
        ca,
        ...validity(VALID),
        extensions: [
          { name: "basicConstraints", cA: true, critical: true },
          { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
        ],
      });
      return issuing(made.cert, made.private);
    },
    async certificate({
      subject = ALICE_SUBJECT,
      usage = "clientAuth",
      days = VALID,
      altNames = [],
    } = {}) {
      const attributes = subject.map(({ shortName, value }) => ({
        shortName,
        value: escaped(value),
      }));
      const made = await generate(attributes, {
        keyType: "ec",
        algorithm: "sha256",
        ca,
        ...validity(days),
        extensions: [
          { name: "basicConstraints", cA: false, critical: true },
          { name: "keyUsage", digitalSignature: true, critical: true },
          { name: "extKeyUsage", [usage]: true },
          ...(altNames.length === 0
            ? []
            : [{ name: "subjectAltName", altNames: altNames.map(altName) } as const]),
        ],
      });
      return { key: made.private, cert: made.cert };
    },
  };
}

function pairOf({ key: privateKey }: ClientAuthority) {
  const publicKey = createPublicKey(privateKey).export({ type: "spki", format: "pem" });
  return { privateKey, publicKey };
}

function altName(written: string) {
  const colon = written.indexOf(":");
  const [kind, value] = [written.slice(0, colon), written.slice(colon + 1)];
  if (kind === "IP") return { type: 7, ip: value } as const;
  return { type: kind === "URI" ? 6 : kind === "email" ? 1 : 2, value } as const;
}

function validity([from, to]: Days) {
  const at = (day: number): Date => new Date(Date.now() + day * DAY_MS);
  return { notBeforeDate: at(from), notAfterDate: at(to) };
}

/**
 * Escapes characters that would end a value (RFC 4514 §2.4), since the library joins the subject to a string and parses
 * it.
 */
function escaped(value: string): string {
  return value
    .replaceAll(/[,+"<>;=#]/g, String.raw`\$&`)
    .replaceAll("\r", String.raw`\0D`)
    .replaceAll("\n", String.raw`\0A`);
}

const DAY_MS = 86_400_000;
