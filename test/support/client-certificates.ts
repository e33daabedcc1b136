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
}

export interface ClientAuthority {
  /** PEM. */
  readonly cert: string;
  /** Issues a certificate; for ALICE_SUBJECT by default. */
  certificate(making?: Making): Promise<ClientCertificate>;
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
 */
export async function clientAuthority(
  name = "Sallyport clients",
  days: Days = [-1, 365],
): Promise<ClientAuthority> {
  const authority = await generate([{ name: "commonName", value: name }], {
    keyType: "ec",
    algorithm: "sha256",
    ...validity(days),
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  return {
    cert: authority.cert,
    async certificate({ subject = ALICE_SUBJECT, usage = "clientAuth", days = VALID } = {}) {
      const attributes = subject.map(({ shortName, value }) => ({
        shortName,
        value: escaped(value),
      }));
      const made = await generate(attributes, {
        keyType: "ec",
        algorithm: "sha256",
        ca: { key: authority.private, cert: authority.cert },
        ...validity(days),
        extensions: [
          { name: "basicConstraints", cA: false, critical: true },
          { name: "keyUsage", digitalSignature: true, critical: true },
          { name: "extKeyUsage", [usage]: true },
        ],
      });
      return { key: made.private, cert: made.cert };
    },
  };
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
