"""Small language models of transformers, from their configurations, in fp32."""

import torch
import transformers


def distilgpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=6))


def gpt_neo_125m():
    config = transformers.GPTNeoConfig(
        hidden_size=768, num_layers=12, num_heads=12, attention_types=[[["global", "local"], 6]]
    )
    return transformers.GPTNeoForCausalLM(config)


def cerebras_gpt_111m():
    config = transformers.GPT2Config(
        n_embd=768, n_layer=10, n_head=12, n_inner=3072, n_positions=2048
    )
    return transformers.GPT2LMHeadModel(config)


def t5_small():
    return transformers.T5ForConditionalGeneration(
        transformers.T5Config(d_model=512, decoder_start_token_id=0)
    )


def steps(name, batch, length, optimizer):
    """A few training steps on full sequences."""
    with torch.device("cuda"):
        model = globals()[name]()
    model.train()
    optimizer = getattr(torch.optim, optimizer)(model.parameters(), lr=0.001)
    for _ in range(4):
        ids = torch.randint(0, 1000, (batch, length)).cuda()
        mask = torch.ones(batch, length, dtype=torch.long).cuda()
        optimizer.zero_grad()
        loss = model(input_ids=ids, attention_mask=mask, labels=ids.clone()).loss
        loss.backward()
        optimizer.step()
    return {"reserved peak": torch.cuda.max_memory_reserved()}
