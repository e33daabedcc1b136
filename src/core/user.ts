/** Somebody whose password was right. */
export interface User {
  readonly name: string;
  readonly groups: readonly string[];
}
