/** A namespace for one test file, with what every pod of the product needs, and a client in it. */
import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { secretFiles } from "../deploy/secrets.ts";
import { testCertificates } from "../support/certificates.ts";
import { ALICE } from "../support/sallyport.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";
import type { Order } from "./client/main.ts";
import type { Answer, Peer } from "./client/send.ts";
import { IMAGE } from "./cluster.ts";
import { kubectl, type Output, type Running, startKubectl } from "./kubectl.ts";
import { hardened } from "./manifests.ts";

/** What a Secret of the product is made from, as in the documents: the arguments of `kubectl create secret`. */
const SECRETS = {
  users: ["generic", "sallyport-users", "--from-file=users.yaml"],
  tls: ["tls", "sallyport-tls", "--cert=tls.crt", "--key=tls.key"],
  keys: ["generic", "sallyport-keys", "--from-file=keys"],
} as const;
type SecretName = keyof typeof SECRETS;

const RESTRICTED = ["enforce", "warn", "audit"].map(
  (mode) => `pod-security.kubernetes.io/${mode}=restricted`,
);

/** A load or another order that goes on until it is stopped. */
export interface Going<Report> {
  stop(): Promise<Report>;
}

export class Space {
  readonly name: string;
  /** Files of the Secrets: users.yaml, tls.crt, tls.key and the directory keys. */
  readonly files: TemporaryDirectory;

  private constructor(name: string, files: TemporaryDirectory) {
    this.name = name;
    this.files = files;
  }

  /** @param purpose a part of the name. */
  static async open(purpose: string): Promise<Space> {
    const name = `sallyport-test-${purpose}-${randomBytes(3).toString("hex")}`;
    const space = new Space(name, await temporaryDirectory());
    await kubectl(["create", "namespace", name]);
    await kubectl(["label", "namespace", name, ...RESTRICTED]);
    for (const [file, content] of Object.entries(await secretFiles())) {
      await mkdir(dirname(join(space.files.path, file)), { recursive: true });
      await space.files.write(file, content);
    }
    for (const secret of Object.keys(SECRETS) as SecretName[]) {
      await space.kubectl(["create", "secret", ...space.#secret(secret)]);
    }
    await space.#startClient();
    return space;
  }

  /** kubectl in this namespace. */
  kubectl(args: readonly string[], input?: string): Promise<Output> {
    return kubectl(["--namespace", this.name, ...args], input);
  }

  /** Applies manifests, and gives what kubectl warns of. */
  async apply(...manifests: readonly object[]): Promise<string> {
    const list = { apiVersion: "v1", kind: "List", items: manifests };
    return (await this.kubectl(["apply", "-f", "-"], JSON.stringify(list))).stderr;
  }

  /** Replaces a Secret by what the files hold now, as docs/how-to/rotate-keys.md says. */
  async replaceSecret(secret: SecretName): Promise<void> {
    const made = [...this.#secret(secret), "--dry-run=client", "--output=yaml"];
    const { stdout } = await this.kubectl(["create", "secret", ...made]);
    await this.kubectl(["replace", "-f", "-"], stdout);
  }

  /** Has the kubelet bring changed Secrets now, not within its minute: it looks at a pod whose annotations change. */
  async bringSecrets(selector: string): Promise<void> {
    const annotation = `test/asked-at=${Date.now()}`;
    await this.kubectl(["annotate", "pods", "--selector", selector, "--overwrite", annotation]);
  }

  /** Carries an order out in the client's pod. */
  async order<Seen>(order: Order): Promise<Seen> {
    const { stdout } = await this.kubectl(inClient(order));
    return JSON.parse(stdout) as Seen;
  }

  /** Begins an order that goes on until it is stopped. It ends with the test in any case. */
  async start<Report>(order: Order): Promise<Going<Report>> {
    const args = ["--namespace", this.name, ...inClient(order)];
    const { child, output }: Running = startKubectl(args);
    onTestFinished(() => void child.kill());
    const { promise: begun, resolve } = Promise.withResolvers<void>();
    child.stdout?.once("data", () => resolve());
    await Promise.race([begun, output]);
    return {
      async stop() {
        child.stdin?.end();
        return JSON.parse((await output).stdout) as Report;
      },
    };
  }

  async peer(host: string, port: number): Promise<Peer> {
    return { host, port, ca: (await testCertificates()).ca };
  }

  /** The status of a request without a token, and of one with a new token. */
  async statuses(host: string, port: number, path = "/x"): Promise<readonly number[]> {
    const peer = await this.peer(host, port);
    const token = await this.order<string>({ kind: "login", peer, credentials: ALICE });
    const asked = [{}, { token }].map((more) =>
      this.order<Answer>({ kind: "ask", peer, path, ...more }),
    );
    return (await Promise.all(asked)).map(({ status }) => status);
  }

  /** Deletes all of it, without the time that pods have to end. KEEP=1 leaves it. */
  async close(): Promise<void> {
    await this.files.close();
    if (process.env["KEEP"] !== undefined) return;
    await kubectl(["delete", "namespace", this.name, "--wait=false"]);
    await this.kubectl(["delete", "pods", "--all", "--grace-period=1", "--timeout=60s"]);
    await kubectl(["wait", "--for=delete", `namespace/${this.name}`, "--timeout=120s"]);
  }

  #secret(secret: SecretName): string[] {
    return SECRETS[secret].map((arg) =>
      arg.replace(/^(--\S+=)/, (option) => `${option}${this.files.path}/`),
    );
  }

  /** A pod that holds the client's sources, and waits. */
  async #startClient(): Promise<void> {
    const sources = join(import.meta.dirname, "client");
    const literal = '--from-literal=package.json={"type":"module"}';
    await this.kubectl(["create", "configmap", "client", `--from-file=${sources}`, literal]);
    const pod = {
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      containers: [
        {
          ...hardened("client", IMAGE),
          command: ["/nodejs/bin/node", "--eval", "setInterval(() => {}, 1e6)"],
          volumeMounts: [{ name: "client", mountPath: "/client", readOnly: true }],
        },
      ],
      volumes: [{ name: "client", configMap: { name: "client" } }],
    };
    const labels = { app: "client" };
    const spec = {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: pod },
    };
    await this.apply({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "client" },
      spec,
    });
    await this.kubectl(["rollout", "status", "deployment/client", "--timeout=120s"]);
  }
}

function inClient(order: Order): string[] {
  const command = ["/nodejs/bin/node", "/client/main.ts", JSON.stringify(order)];
  return ["exec", "--stdin", "deployment/client", "--", ...command];
}
