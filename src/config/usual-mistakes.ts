/** Mistakes that many people make in a configuration, each with what to write instead. */

/** Keys of other programs, and those of ours that they probably stand for. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  type: ["kind"],
  driver: ["kind"],
  backend: ["upstream"],
  service: ["upstream"],
  to: ["upstream"],
  address: ["listen", "url"],
  bind: ["listen"],
  port: ["listen"],
  url: ["targets"],
  servers: ["targets"],
  target: ["targets"],
  prefix: ["path"],
  file: ["path"],
  cert: ["certFile"],
  certificate: ["certFile"],
  key: ["keyFile"],
  ca: ["caFile"],
  secret: ["clientSecret"],
  roles: ["groups"],
  aud: ["audience"],
  iss: ["issuer"],
  jwks_uri: ["jwks"],
};

/** Returns the key that a key of another program stands for, among those that may stand in its place. */
export function synonymOf(key: string, known: readonly string[]): string | undefined {
  const meant = Object.hasOwn(SYNONYMS, key.toLowerCase()) ? SYNONYMS[key.toLowerCase()] : [];
  return meant?.find((each) => known.includes(each));
}

type Mistake = readonly [
  problem: RegExp,
  written: RegExp,
  hint: string | ((part: string) => string),
];

const PROVIDER = /^(?:oidc|openid(?:-connect)?|oauth2?|jwt|jwks|keycloak|saml)$/i;

/** The problem with its key, the written value, and the hint; `$1` stands for a part of the value that cannot be a secret. */
const MISTAKES: readonly Mistake[] = [
  [/^log\.level must be one of/, /^warning$/i, "write warn"],
  [/^log\.level must be one of/, /^(?:verbose|trace|all)$/i, "write debug"],
  [/\.auth must be one of/, /^(?:false|no|off|public|anonymous|disabled)$/i, "write none"],
  [/\.auth must be one of/, /^(?:true|yes|on|jwt|token|bearer)$/i, "write required"],
  [/ must be true or false$/, /^(?:yes|on|y|1|enabled)$/i, "write true"],
  [/ must be true or false$/, /^(?:no|off|n|0|disabled)$/i, "write false"],
  [
    /^admin\.listen must be an address/,
    /^(?:\*?:)?(\d{1,5})$/,
    "did you mean 127.0.0.1:$1, or 0.0.0.0:$1 for other machines, too?",
  ],
  [/\.listen must be an address/, /^(?:\*?:)?(\d{1,5})$/, "did you mean 0.0.0.0:$1?"],
  [/\.listen must be an address/, /^https?:\/\/([\w.-]+:\d{1,5})\/?$/, "did you mean $1?"],
  [
    /ateLimit must be a mapping/,
    /^(\d{1,9}) ?(?:r|req)?(?:\/|per) ?1?([smh])/,
    "write { requests: $1, within: 1$2 }",
  ],
  [/ateLimit must be a mapping/, /^/, "write { requests: 5, within: 1s }"],
  [/\.methods must be a list/, /^([A-Za-z]{1,20})$/, (method) => `write [${method.toUpperCase()}]`],
  [
    / must be a duration/,
    /^(\d{1,6}) ?d(?:ays?)?$/i,
    (days) => `write ${Number(days) * 24}h: the longest unit is h`,
  ],
  [
    / must be a duration/,
    /^(\d{1,9} ?(?:ms|s|m(?!s)|h))/i,
    (part) => `did you mean ${part.replace(" ", "").toLowerCase()}?`,
  ],
  [
    / must be a size/,
    /^(\d{1,9} ?[KMG])/i,
    (part) => `did you mean ${part.replace(" ", "").replace("k", "K").toUpperCase()}iB?`,
  ],
  [
    /^users\[\d+\]\.kind must be one of/,
    PROVIDER,
    "write the issuer of an OpenID provider into tokens.trusted, or for sign-ins with a browser into browser.providers",
  ],
  [
    /^tokens\.trusted.*\.algorithms\[\d+\] must be one of/,
    /^HS\d+$/i,
    "write an algorithm with a public key, such as RS256: shared secrets are not accepted from an issuer",
  ],
  [/^upstreams must be a mapping/, /^\[\]$/, "write { NAME: { targets: [URL] } }"],
  [/^upstreams\.[\w-]+ must be a mapping/, /^(?:https?:|unix:|\[\])/, "write { targets: [URL] }"],
  [
    /^the configuration must be a mapping/,
    /^/,
    "write sections such as `server:` and `upstreams:`; is it the right file?",
  ],
  [/ must be a list$/, /^\{\}$/, "write `- ` before each entry, or put it in brackets: [{ }]"],
  [/ must be a list$/, /^[^[{]/, "put it in brackets: [ ]"],
  [
    / must be a mapping of keys to values$/,
    /^\[\]$/,
    "write keys with their values, without `- ` or brackets",
  ],
];

/**
 * Returns what to write instead of a value; undefined if the mistake is none of the usual ones.
 *
 * @param problem the key and what is wrong with it.
 */
export function usualMistake(problem: string, written: unknown): string | undefined {
  const text = textOf(written);
  for (const [wrong, values, hint] of MISTAKES) {
    const found = wrong.test(problem) ? values.exec(text) : null;
    if (found === null) continue;
    if (typeof hint === "function") return hint(found[1] ?? "");
    return hint.replaceAll(/\$(\d)/g, (_, index) => found[Number(index)] ?? "");
  }
  return undefined;
}

/** Returns a value as text, and `[]` or `{}` for lists and mappings. */
function textOf(written: unknown): string {
  if (typeof written === "string") return written;
  if (typeof written === "object" && written !== null) return Array.isArray(written) ? "[]" : "{}";
  return JSON.stringify(written) ?? "";
}
