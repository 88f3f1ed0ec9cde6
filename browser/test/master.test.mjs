// A run's page: a node of the graph shows its step beside it.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { accessible, awake, newPage, signIn, stillClock } from "../lib/browser.mjs";
import { model, runScene, step } from "../lib/runs.mjs";
import { limit, stage } from "../lib/stage.mjs";

const provider = await model();
after(() => provider.close());
const { g, browser } = await stage(provider);
await g.person("vic", "viewer");
const scene = await runScene(g, await g.person("bo", "approver"));

for (const [what, options] of [["with a script", {}], ["without a script", { javaScriptEnabled: false }]]) {
  test(`a node of the graph shows its step beside it, ${what}`, limit, async (t) => {
    const page = await newPage(browser, t, options);
    const script = options.javaScriptEnabled !== false;
    if (script) await stillClock(page);
    await signIn(page, await g.setupLink("vic"), `${g.url}/runs/${scene.done.id}`);
    if (script) await awake(page);
    const shown = () => page.locator(".steps .step:visible").evaluateAll((all) => all.map((el) => el.dataset.step));
    assert.equal((await shown()).length, 1);
    // The script marks the node of the step that is shown, a moment after the address has changed.
    const nodeOf = (key) => `.graph a[href="#s-${step(scene.done, key).id}"]`;
    const marked = (key) => page.locator(`${nodeOf(key)}[aria-current="true"]`).waitFor();
    for (const key of ["read", "change"]) {
      const node = page.locator(nodeOf(key));
      await node.focus();
      await page.keyboard.press("Enter");
      await page.waitForURL(`**/*#s-${step(scene.done, key).id}`);
      assert.deepEqual(await shown(), [key]);
      if (script) await marked(key);
    }
    const graph = await page.getByTestId("graph").boundingBox(), detail = await page.locator("#steps").boundingBox();
    assert.ok(detail.x > graph.x + graph.width - 1, "the step does not stand beside the graph");
    if (script) {
      await page.keyboard.press("j");
      await page.locator(`${nodeOf("change")}:not([aria-current])`).waitFor();
      assert.notDeepEqual(await shown(), ["change"]);
      await page.keyboard.press("k");
      await marked("change");
      assert.deepEqual(await shown(), ["change"]);
      await accessible(page, "a run's master and detail");
    }
    await page.getByTestId("all-steps").click();
    assert.equal((await shown()).length, scene.done.steps.length);
  });
}
