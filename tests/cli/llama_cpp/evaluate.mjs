// SPDX-License-Identifier: MIT
// Feeds token ids to llama.cpp and prints the ids it continues with, greedily.
//
// node evaluate.mjs JOB.json, which holds {"modules": folder of node-llama-cpp, "runs": [{"model",
// "ids", "count"}]}; answers with one JSON list of id lists. No text is tokenized on the way.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const job = JSON.parse(readFileSync(process.argv[2], "utf8"));
const entry = pathToFileURL(`${job.modules}/node-llama-cpp/dist/index.js`).href;
const { getLlama } = await import(entry);
const llama = await getLlama({
    gpu: false, build: "never", skipDownload: true, usePrebuiltBinaries: true, logLevel: "error",
});

async function continuation({ model: modelPath, ids, count }) {
    const model = await llama.loadModel({ modelPath });
    const context = await model.createContext({ contextSize: 256, threads: 1 });
    const found = [];
    for await (const id of context.getSequence().evaluate(ids, { temperature: 0 })) {
        found.push(id);
        if (found.length === count) break;
    }
    await context.dispose();
    await model.dispose();
    return found;
}

const answers = [];
for (const run of job.runs) answers.push(await continuation(run));
console.log(JSON.stringify(answers));
await llama.dispose();
