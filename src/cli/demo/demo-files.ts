import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hashPassword } from "../../credentials/hashing/new-hash.ts";

export interface DemoSettings {
  /** `127.0.0.1:8443` */
  readonly listen: string;
  readonly adminListen: string;
  readonly username: string;
  readonly password: string;
  readonly backend: string;
}

/** A private directory that is removed when this process exits. */
export interface DemoFiles {
  readonly directory: string;
  readonly configuration: string;
  /** Writes another file and returns its path. */
  write(name: string, content: string): string;
}

/** Writes the files that a deployment provides: the configuration and the users. */
export function writeDemoFiles(settings: DemoSettings): DemoFiles {
  const hash = hashPassword(settings.password);
  // mkdtemp uses mode 0700.
  const directory = mkdtempSync(join(tmpdir(), "sallyport-demo-"));
  process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
  const write = (name: string, content: string): string => {
    const file = join(directory, name);
    writeFileSync(file, content, { mode: 0o600 });
    return file;
  };
  write("users.yaml", users(settings.username, hash));
  return { directory, configuration: write("config.yaml", configuration(settings)), write };
}

function users(username: string, hash: string): string {
  return `users:
  ${username}:
    password: ${hash}
    groups: [visitors]
`;
}

function configuration({ listen, adminListen, backend }: DemoSettings): string {
  return `server:
  listen: "${listen}"
  tls: { selfSigned: true }
  limits: { connections: 1000 }
  drain: { delay: 0s, timeout: 5s }

admin:
  listen: "${adminListen}"

users:
  - { kind: file, path: users.yaml }

routes:
  - { name: public, path: /public/, auth: none, upstream: backend }
  - { name: admins, path: /admin/, require: { groups: { any: [admins] } }, upstream: backend }
  - { name: everything, path: /, upstream: backend }

upstreams:
  backend: { targets: ["${backend}"] }
`;
}
