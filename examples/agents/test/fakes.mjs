// A LangChain chat model that is a function of the messages.
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";

export { AIMessage };

export class ScriptedModel extends BaseChatModel {
  constructor(answer) {
    super({});
    this.answer = answer;
  }

  _llmType() {
    return "scripted";
  }

  bindTools() {
    return this;
  }

  async _generate(messages) {
    const message = this.answer(messages);
    return { generations: [{ text: String(message.content), message }] };
  }
}
