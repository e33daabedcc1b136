/** Of each kind of trouble so many are told in words; all are counted. */
const TOLD = 10;

/** Trouble of one kind. */
export class Trouble {
  readonly told: string[] = [];
  count = 0;

  add(why: string): void {
    this.count += 1;
    if (this.told.length < TOLD) this.told.push(why);
  }
}
