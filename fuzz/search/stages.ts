import { type Fault, fault } from "../judge/fault.ts";
import type { StartSubject } from "../subject/subject.ts";
import type { Case } from "../wire/converse.ts";
import { type Played, Stage } from "./stage.ts";

/** The stages of a run: one without TLS, and one with it if a class wants that. */
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

  /** The same on all stages. */
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

  /** What no single case answers for, since the last call. */
  troubles(): Fault[] {
    return this.#all.flatMap((each) => each.troubles());
  }

  /** The same, and whether all proxies turn, say that they are alive, and stay small. */
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
