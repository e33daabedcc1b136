import { type Fault, fault } from "../judge/fault.ts";
import type { StartSubject } from "../subject/subject.ts";
import type { Case } from "../wire/converse.ts";
import { type Played, Stage } from "./stage.ts";

/** The stages of a run: one without TLS, and one with TLS if a class needs it. */
export class Stages implements AsyncDisposable {
  readonly #plain: Stage;
  readonly #all: readonly Stage[];

  private constructor(plain: Stage, secure: Stage | undefined) {
    this.#plain = plain;
    this.#all = secure === undefined ? [plain] : [plain, secure];
  }

  static async open(start: StartSubject, withTls: boolean): Promise<Stages> {
    const plain = await Stage.open(start, false);
    return new Stages(plain, withTls ? await Stage.open(start, true) : undefined);
  }

  /** The credentials, which are the same on all stages. */
  get credentials() {
    return this.#plain.subject.credentials;
  }

  play(play: Case): Promise<Played> {
    return this.#for(play).play(play);
  }

  playAlone(play: Case): Promise<readonly Fault[]> {
    return this.#for(play).playAlone(play);
  }

  /** Whether one of the proxies has ended. */
  exited(): boolean {
    return this.#all.some(({ subject }) => subject.exited());
  }

  /** Returns the faults since the last call that belong to no single case. */
  troubles(): Fault[] {
    return this.#all.flatMap((each) => each.troubles());
  }

  /** Returns these, and faults of proxies that stall, do not report that they are alive, or have grown. */
  async lookAround(): Promise<Fault[]> {
    const faults = this.troubles();
    for (const stage of this.#all) {
      faults.push(...(await stage.stalls()));
      const { subject } = stage;
      if (subject.exited()) continue;
      if (!(await subject.alive())) faults.push(fault("trouble", "/livez does not answer"));
      faults.push(...(await stage.growth()));
    }
    return faults;
  }

  async revive(): Promise<void> {
    for (const each of this.#all) await each.revive();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const each of this.#all) await each[Symbol.asyncDispose]();
  }

  #for({ dial }: Case): Stage {
    return (dial?.secure === true ? this.#all[1] : undefined) ?? this.#plain;
  }
}
