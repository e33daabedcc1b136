/**
 * The lint rules. The greater part holds the plan of the house: which folder may import which, which library has
 * its door where, and who may make the three proofs (GateRequest, Identity, Permit).
 *
 * Of several overrides that set one rule for a file the last one wins as a whole, so every override
 * below carries a complete list, composed by `house`. `test/ground/lint-doors.test.ts` plants a violation
 * of each line and sees it refused.
 */
import type { OxlintConfig } from "oxlint";

interface Restriction {
  regex?: string;
  group?: string[];
  importNames?: string[];
  allowTypeImports?: boolean;
  message: string;
}

const FEATURES = [
  "server",
  "credentials",
  "tokens",
  "policy",
  "upstream",
  "observe",
  "shared",
] as const;

const LAYERS = ["lib", "core", ...FEATURES, "config", "app", "cli", "entry.ts"] as const;

type Layer = (typeof LAYERS)[number];

/**
 * lib <- core <- features <- config <- app <- cli <- entry.ts. Of a feature, `core` and its siblings know types only; so do
 * features of `config`, which says what their settings are.
 */
const MAY_IMPORT: Record<Layer, readonly Layer[]> = {
  lib: [],
  core: ["lib"],
  server: ["lib", "core"],
  credentials: ["lib", "core"],
  tokens: ["lib", "core"],
  policy: ["lib", "core"],
  upstream: ["lib", "core"],
  observe: ["lib", "core"],
  shared: ["lib", "core"],
  config: ["lib", "core", ...FEATURES],
  app: ["lib", "core", ...FEATURES, "config"],
  cli: ["lib", "core", ...FEATURES, "config", "app"],
  "entry.ts": ["lib", "core", ...FEATURES, "config", "app", "cli"],
};

/** Where each library may be imported: a folder with its slash, or one file, seen from src/; or a tool. */
const DOORS: Record<string, readonly string[]> = {
  jose: ["tokens/"],
  "@bufbuild/protobuf": ["server/decisions/envoy-check.ts"],
  "openid-client": ["tokens/"],
  "lru-cache": ["tokens/", "policy/"],
  "http-proxy-3": ["upstream/"],
  "prom-client": ["observe/"],
  pino: ["observe/"],
  "@opentelemetry": ["observe/"],
  zod: ["config/"],
  yaml: ["config/", "lib/files/positioned-yaml.ts", "tools/migrate/", "tools/api-key/"],
  "smol-toml": ["tools/migrate/"],
  bcryptjs: ["credentials/"],
  ldapts: ["credentials/"],
  pg: ["lib/postgres/postgres-pool.ts"],
  "pg-protocol": ["lib/postgres/postgres-pool.ts"],
  selfsigned: ["server/tls/development-certificate.ts"],
  // The tools beside the product. `run` loads a command when it is called, and no tool otherwise.
  "@sallyport": ["cli/run.ts"],
};

/** What every tool may import of src: how to be a command, and code that could be copied into any project. */
const FOR_TOOLS = ["lib/**", "cli/command.ts", "cli/arguments.ts", "cli/terminal/**"];

/** The folders of `tools/`, and what else of src each of them may import. */
const TOOLS: Record<string, readonly string[]> = {
  "api-key": ["config/load.ts", "tokens/api-keys/api-key-file.ts"],
  completion: [],
  demo: [
    "cli/serving/**",
    "cli/version.ts",
    "config/fields.ts",
    "config/snapshot.ts",
    "credentials/hashing/new-hash.ts",
    "observe/log/log-sink.ts",
  ],
  drain: ["cli/admin-address.ts"],
  init: [
    "config/fields.ts",
    "credentials/hashing/new-hash.ts",
    "server/tls/development-certificate.ts",
    "tokens/keys/key-directory.ts",
    "tokens/keys/key-making.ts",
  ],
  keys: ["config/load.ts", "tokens/keys/**"],
  migrate: [],
  selftest: [],
  top: ["cli/admin-address.ts", "core/status.ts", "server/admin/status/**"],
};

/** Modules of which only types are imported, and what takes their place: what an import would cost stands there. */
const COSTLY: Record<string, string> = { "node:http": "lib/http/node-http.ts" };

/** Who may make a proof: the function, the core file that exports it, and the place allowed to import it. */
const MINTS = [
  { name: "mintGateRequest", file: "gate-request", place: "server/request/intake.ts" },
  { name: "mintIdentity", file: "identity", place: "tokens/" },
  { name: "unbind", file: "bound-token", place: "tokens/proofs/proofs.ts" },
  { name: "mintPermit", file: "permit", place: "policy/authorize.ts" },
] as const;

function isFeature(layer: Layer | undefined): boolean {
  return FEATURES.some((feature) => feature === layer);
}

/** Whether a place (`tokens/`, or one file) covers everything that an override is for. */
function covers(place: string, subject: string): boolean {
  return place === subject || (place.endsWith("/") && subject.startsWith(place));
}

/**
 * Everything that may not be imported at one place.
 * @param layer whose directions hold there; undefined for a folder that is not in the plan, which is held to a feature's.
 * @param subject the folder with its slash, or the one file, seen from src/.
 */
function house(layer: Layer | undefined, subject: string): Restriction[] {
  const allowed: readonly Layer[] = layer === undefined ? ["lib", "core"] : MAY_IMPORT[layer];
  const directions = LAYERS.filter((other) => other !== layer && !allowed.includes(other)).map(
    (other) => ({
      regex: other.endsWith(".ts")
        ? `^\\.{1,2}/(.*/)?${other.replace(".", "\\.")}$`
        : `^\\.{1,2}/(.*/)?${other}/`,
      allowTypeImports:
        (layer === "core" && isFeature(other)) ||
        (isFeature(layer) && (isFeature(other) || other === "config")),
      message: `direction: src/${subject} may not import ${other}.`,
    }),
  );
  const mints = MINTS.filter(({ place }) => !covers(place, subject)).map(
    ({ name, file, place }) => ({
      regex: `^\\.{1,2}/(.*/)?${file}\\.ts$`,
      importNames: [name],
      message: `mint: ${name} is imported by ${place} only.`,
    }),
  );
  const tools = {
    regex: "^\\.{1,2}/(.*/)?tools/",
    message: `direction: src/${subject} may not import a tool by its path.`,
  };
  return [...directions, tools, ...doorsFor(subject), ...COSTLY_FOR_ALL, ...mints];
}

function doorsFor(subject: string): Restriction[] {
  return Object.entries(DOORS)
    .filter(([, places]) => !places.some((place) => covers(place, subject)))
    .map(([library, places]) => ({
      regex: `^${library}(/|$)`,
      message: `door: ${library} is imported in ${places.join(" and ")} only.`,
    }));
}

const COSTLY_FOR_ALL: readonly Restriction[] = Object.entries(COSTLY).map(([module, place]) => ({
  regex: `^${module}$`,
  allowTypeImports: true,
  message: `costly: of ${module} types alone are imported; the rest is in ${place}.`,
}));

/** Everything that a tool may not import. */
function toolHouse(tool: string, doors: readonly string[]): Restriction[] {
  const subject = `tools/${tool}/`;
  const places = [...FOR_TOOLS, ...doors];
  const source = {
    group: ["**/src/**", ...places.map((place) => `!**/src/${place}`)],
    message: `direction: ${subject} may import of src only ${places.join(", ")}.`,
  };
  const siblings = Object.keys(TOOLS).filter((each) => each !== tool);
  const others = {
    regex: `^(\\.\\./)+(tools/)?(${siblings.join("|")})/`,
    message: `direction: ${subject} may not import another tool.`,
  };
  return [source, others, ...doorsFor(subject), ...COSTLY_FOR_ALL];
}

function override(files: string, patterns: Restriction[]) {
  return {
    files: [files],
    rules: { "no-restricted-imports": ["error", { patterns }] },
  } satisfies NonNullable<OxlintConfig["overrides"]>[number];
}

/** Single files that may do more than their folder. */
const FILES = [...Object.values(DOORS).flat(), ...MINTS.map(({ place }) => place)].filter((place) =>
  place.endsWith(".ts"),
);

export default {
  options: { typeAware: true, denyWarnings: true, reportUnusedDisableDirectives: "error" },
  plugins: ["typescript", "unicorn", "oxc", "import", "promise", "node"],
  categories: { correctness: "error", suspicious: "error" },
  env: { node: true, es2024: true },
  // src/main.ts is a link to bin/main.ts; *_pb.ts are generated.
  ignorePatterns: ["node_modules/**", "dist/**", "coverage/**", "src/main.ts", "**/*_pb.ts"],
  rules: {
    // Values only: a type may point back.
    "import/no-cycle": ["error", { ignoreTypes: true }],
    "typescript/no-floating-promises": "error",
    "typescript/no-misused-promises": "error",
    "typescript/await-thenable": "error",
    "typescript/no-explicit-any": "error",
    "typescript/no-non-null-assertion": "error",
    "typescript/consistent-type-imports": "error",
    "typescript/switch-exhaustiveness-check": [
      "error",
      { allowDefaultCaseForExhaustiveSwitch: true, considerDefaultExhaustiveForUnions: true },
    ],
    // Said better by the compiler: noImplicitReturns, noUnusedLocals (which knows `#proof in value`).
    "consistent-return": "off",
    "typescript/consistent-return": "off",
    "no-unused-private-class-members": "off",
    // Against our style: lists of header pairs are spread on purpose, a metric is registered by `new`.
    "unicorn/no-useless-spread": "off",
    "no-new": "off",
    // Half of what it finds are functions of plain objects, declared in the method style.
    "typescript/unbound-method": "off",
    // A small function may stand where it is used, and its parameter may have the plain name.
    "unicorn/consistent-function-scoping": "off",
    "no-shadow": "off",
    // `import fc from "fast-check"` is how its documentation says it.
    "import/no-named-as-default-member": "off",
    "no-underscore-dangle": ["error", { allowAfterThis: true }],
    // Of browsers; the messages here go to worker threads.
    "unicorn/require-post-message-target-origin": "off",
    // A promise that nobody waits for gives nothing back.
    "promise/always-return": "off",
    "no-unused-vars": ["error", { ignoreRestSiblings: true }],
  },
  overrides: [
    {
      files: ["test/**"],
      rules: {
        "typescript/no-unsafe-type-assertion": "off",
        "unicorn/no-thenable": "off",
      },
    },
    {
      files: ["src/**", "tools/**"],
      rules: {
        // A function that holds other functions counts with them; a class does not.
        "max-lines": ["error", { max: 450 }],
        "max-lines-per-function": ["error", { max: 65, IIFEs: true }],
      },
    },
    {
      // The one place that reads private parts of Node: test/ground/private-parts.test.ts lists them.
      files: ["src/lib/node-internals/**"],
      rules: { "no-underscore-dangle": "off" },
    },
    override("src/**/*.ts", house(undefined, "*")),
    ...LAYERS.map((layer) =>
      layer.endsWith(".ts")
        ? override(`src/${layer}`, house(layer, layer))
        : override(`src/${layer}/**/*.ts`, house(layer, `${layer}/`)),
    ),
    ...FILES.map((file) => {
      const layer = LAYERS.find((each) => file.startsWith(`${each}/`));
      return override(`src/${file}`, house(layer, file));
    }),
    ...Object.entries(TOOLS).map(([tool, doors]) =>
      override(`tools/${tool}/**/*.ts`, toolHouse(tool, doors)),
    ),
  ],
} satisfies OxlintConfig;
