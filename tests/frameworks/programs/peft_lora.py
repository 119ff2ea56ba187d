"""Fine-tunes adapters (LoRA) of a small Llama that is kept frozen in bf16."""

import argparse
import json

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--rank", type=int, default=8)
parser.add_argument("--full", action="store_true", help="train all weights instead")
parser.add_argument("--checkpointing", action="store_true")
parser.add_argument("--steps", type=int, default=3)
args = parser.parse_args()

torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=8192,
    hidden_size=512,
    intermediate_size=1408,
    num_hidden_layers=6,
    num_attention_heads=8,
    num_key_value_heads=4,
    use_cache=False,
)
model = LlamaForCausalLM(config).to(torch.bfloat16)
if args.checkpointing:
    model.gradient_checkpointing_enable()
    model.enable_input_require_grads()
if not args.full:
    lora = LoraConfig(
        r=args.rank,
        lora_alpha=16,
        lora_dropout=0.05,
        target_modules=["q_proj", "k_proj", "v_proj", "o_proj"],
        task_type="CAUSAL_LM",
    )
    model = get_peft_model(model, lora)
    model.print_trainable_parameters()
model.cuda().train()
trained = [it for it in model.parameters() if it.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=2e-4)
for _ in range(args.steps):
    tokens = torch.randint(config.vocab_size, (args.batch_size, 256)).cuda()
    lengths = torch.randint(64, 257, (args.batch_size, 1), device="cuda")
    mask = (torch.arange(256, device="cuda") < lengths).long()
    labels = tokens.masked_fill(mask == 0, -100)
    loss = model(input_ids=tokens, attention_mask=mask, labels=labels).loss
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(trained, 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(f"loss {loss.item():.4f}, norm {norm.item():.4f}")
print(
    json.dumps(
        {
            "steps": int(optimizer.state[trained[0]]["step"]),
            "micro_batches": args.steps,
            "trained": sum(it.numel() for it in trained),
            "allocated": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.max_memory_reserved(),
        }
    )
)
