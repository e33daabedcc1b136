import fc from "fast-check";

/** The pieces of targets: public and protected names, and everything that some parser reads as a separator or a dot. */
const PIECES = [
  ...["public", "admin", "public/", "/admin", "x", "a.b", "..a", "...", "@", "~", "+", ",", "="],
  ...["/", "//", "/.", "/..", "/../", "/./", "\\", "\\..\\", ";", ";/../", "..;/", ";a=b", "%"],
  ...["%2e", "%2E", "%2f", "%2F", "%5c", "%5C", "%3b", "%3B", "%00", "%0a", "%0d", "%20", "%09"],
  ...[
    "%252e",
    "%252f",
    "%25",
    "%2525",
    "%2",
    "%%32%65",
    "%25%32%66",
    "%c0%ae",
    "%c0%af",
    "%e0%80%af",
  ],
  ...["%61dmin", "%41", "%70ublic", "%40", "%3a", "%23", "%3f", "%u002e", "%c3%a9", "%ff", "%7e"],
] as const;
const AFTERWARDS = [
  "",
  "",
  "?",
  "?/../admin",
  "?a=b;c",
  "#",
  "#/public/",
  "?x#/public/",
  "%23/public/",
];

/** Targets of which some lead to /admin, in some reading. /public/ is public. */
export const pathTargets = fc
  .tuple(
    fc.constantFrom("/public/", "/public", "/", "/admin", "/%70ublic/", "//public/", "/public/.."),
    fc.array(fc.constantFrom(...PIECES), { maxLength: 6 }),
    fc.constantFrom(...AFTERWARDS),
  )
  .map(([start, pieces, end]) => start + pieces.join("") + end);

/** Targets with which proxies were deceived, made by hand. */
export const PATH_TRICKS = [
  ...[
    "/public/../admin",
    "/public/..%2fadmin",
    "/public/..%5cadmin",
    "/public\\..\\admin",
    "/admin",
  ],
  ...["/public/..;/admin", "/public/%2e%2e/admin", "/public/%252e%252e/admin", "/admin?/public/"],
  ...["/admin#/public/", "/admin%23/public/", "/admin;/public/", "/public/.%00./admin", "//admin"],
  ...["/public/%c0%ae%c0%ae/admin", "/%61dmin", "/ADMIN/../admin", "/public/x/../../admin"],
];
