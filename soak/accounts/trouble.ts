/** The number of troubles of each kind that are stored as text; all are counted. */
const MAX_EXAMPLES = 10;

/** Trouble of one kind. */
export class Trouble {
  readonly examples: string[] = [];
  count = 0;

  add(why: string): void {
    this.count += 1;
    if (this.examples.length < MAX_EXAMPLES) this.examples.push(why);
  }
}
