"""Trains a small conditional UNet of diffusers on noise, as in its text-to-image example."""

import argparse
import json

import torch
import torch.nn.functional as F
from diffusers import AutoencoderKL, DDPMScheduler, UNet2DConditionModel
from diffusers.optimization import get_scheduler
from diffusers.training_utils import EMAModel, compute_snr

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--checkpointing", action="store_true")
parser.add_argument("--steps", type=int, default=3)
args = parser.parse_args()

torch.manual_seed(0)
unet = UNet2DConditionModel(
    sample_size=32,
    block_out_channels=(64, 128, 128),
    layers_per_block=1,
    down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
    cross_attention_dim=128,
    attention_head_dim=8,
    norm_num_groups=16,
).cuda()
vae = AutoencoderKL(
    block_out_channels=(32, 64),
    down_block_types=("DownEncoderBlock2D",) * 2,
    up_block_types=("UpDecoderBlock2D",) * 2,
    norm_num_groups=16,
)
vae.requires_grad_(False).to("cuda", torch.float16)
if args.checkpointing:
    unet.enable_gradient_checkpointing()
unet.train()
average = EMAModel(unet.parameters(), model_cls=UNet2DConditionModel, model_config=unet.config)
average.to("cuda")
noises = DDPMScheduler(num_train_timesteps=1000)
optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-4)
schedule = get_scheduler("cosine", optimizer, num_warmup_steps=1, num_training_steps=args.steps)
scaler = torch.amp.GradScaler("cuda")

for _ in range(args.steps):
    images = torch.randn(args.batch_size, 3, 64, 64).cuda()
    text = torch.randn(args.batch_size, 77, 128, device="cuda")
    latents = vae.encode(images.half()).latent_dist.sample().float() * vae.config.scaling_factor
    noise = torch.randn_like(latents)
    times = torch.randint(1000, (args.batch_size,), device="cuda")
    noisy = noises.add_noise(latents, noise, times)
    with torch.autocast("cuda", dtype=torch.float16):
        predicted = unet(noisy, times, encoder_hidden_states=text).sample
    snr = compute_snr(noises, times)
    weights = torch.stack([snr, 5.0 * torch.ones_like(times)], dim=1).min(dim=1)[0] / snr
    loss = F.mse_loss(predicted.float(), noise, reduction="none").mean(dim=[1, 2, 3])
    loss = (loss * weights).mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(unet.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    schedule.step()
    optimizer.zero_grad()
    average.step(unet.parameters())
    print(f"loss {loss.detach().item():.4f}")
steps = next(iter(optimizer.state.values()))["step"]
print(
    json.dumps(
        {
            "steps": int(steps),
            "micro_batches": args.steps,
            "allocated": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.max_memory_reserved(),
        }
    )
)
