import { generate } from "selfsigned";

/** A certificate that a client may show, with its key, PEM. */
interface ClientCertificate {
  readonly key: string;
  readonly cert: string;
}

interface Attribute {
  readonly shortName: string;
  readonly value: string;
}

interface Making {
  readonly subject?: readonly Attribute[];
  /** What it may be used for; clients by default. */
  readonly usage?: "clientAuth" | "serverAuth";
  /** Days from now at which it begins and ends. */
  readonly days?: readonly [from: number, to: number];
}

export interface ClientAuthority {
  /** PEM. */
  readonly cert: string;
  /** A certificate of this authority; ALICE's unless something else is said. */
  certificate(making?: Making): Promise<ClientCertificate>;
}

/** `O=Example,OU=sales,CN=alice`, from the general to the specific. */
export const ALICE_SUBJECT: readonly Attribute[] = [
  { shortName: "O", value: "Example" },
  { shortName: "OU", value: "sales" },
  { shortName: "CN", value: "alice" },
];

/** An authority that makes certificates for clients. */
export async function clientAuthority(name = "Sallyport clients"): Promise<ClientAuthority> {
  const authority = await generate([{ name: "commonName", value: name }], {
    keyType: "ec",
    algorithm: "sha256",
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  return {
    cert: authority.cert,
    async certificate({ subject = ALICE_SUBJECT, usage = "clientAuth", days = [-1, 30] } = {}) {
      const [notBeforeDate, notAfterDate] = days.map((day) => new Date(Date.now() + day * DAY_MS));
      const attributes = subject.map(({ shortName, value }) => ({
        shortName,
        value: escaped(value),
      }));
      const made = await generate(attributes, {
        keyType: "ec",
        algorithm: "sha256",
        ca: { key: authority.private, cert: authority.cert },
        ...(notBeforeDate && { notBeforeDate }),
        ...(notAfterDate && { notAfterDate }),
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

/** The library writes the subject as a line of text and reads that: what would end the value is escaped (RFC 4514 §2.4). */
function escaped(value: string): string {
  return value
    .replaceAll(/[,+"<>;=#]/g, String.raw`\$&`)
    .replaceAll("\r", String.raw`\0D`)
    .replaceAll("\n", String.raw`\0A`);
}

const DAY_MS = 86_400_000;
