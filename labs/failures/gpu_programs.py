"""Programs of the corpus `gpu`, which needs an NVIDIA H100 or H200, nvcc, PyTorch, JAX, CuPy, Numba and Triton.

Written after the classifier was frozen, and before its first verdict on any of them; see README.md, "Fresh corpora".
Those in ALONE fill the memory of the GPU: nothing else runs beside them.
"""

from __future__ import annotations

PROGRAMS: list[tuple[str, str, str | None, tuple[str, ...], str]] = []
ALONE: set[str] = set()


def add(name: str, kind: str, truth: str | None, text: str, *others: str, alone: bool = False) -> None:
    """Add a program; `alone`: it needs all of the GPU's memory."""
    PROGRAMS.append((name, kind, truth, others, text.strip("\n") + "\n"))
    if alone:
        ALONE.add(name)


_TRAINING = """
import torch, torch.nn as nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
def batch(n=64):
    return torch.randn(n, 256, device="cuda"), torch.randint(0, 10, (n,), device="cuda")
for step in range(20):
    x, y = batch()
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
    if step % 10 == 0:
        print(f"step {step} loss {loss.item():.4f} lr 1.0e-03")
"""

# --- memory of the GPU
add(
    "torch-batch",
    "torch",
    "gpu_out_of_memory",
    """
import torch, torch.nn as nn
net = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()).cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for size in (64, 512, 4096, 16384, 65536):
    x = torch.randn(size, 3, 224, 224, device="cuda")
    loss = net(x).mean()
    loss.backward()
    opt.step()
    print("batch size", size, "ok, loss", round(loss.item(), 4))
""",
    alone=True,
)
add(
    "torch-history",
    "torch",
    "gpu_out_of_memory",
    """
import torch
w = torch.randn(16384, 16384, device="cuda", requires_grad=True)
losses, x = [], torch.randn(16384, 16384, device="cuda")
for epoch in range(400):
    out = torch.tanh(x @ w)
    losses.append(out)
    if epoch % 20 == 0:
        print(f"epoch {epoch}: mean {out.mean().item():.5f}, reserved {torch.cuda.memory_reserved() >> 20} MiB")
""",
    alone=True,
)
add(
    "torch-fraction",
    "torch",
    "gpu_out_of_memory",
    """
import torch
torch.cuda.set_per_process_memory_fraction(0.05)
cache = {}
for key in range(200):
    cache[key] = torch.zeros(256, 1024, 1024, device="cuda")
    print("cached features of shard", key)
""",
    "resource_limit",
)
add(
    "torch-llm",
    "torch",
    "gpu_out_of_memory",
    """
import torch
from transformers import LlamaConfig, LlamaForCausalLM
config = LlamaConfig(hidden_size=8192, intermediate_size=28672, num_hidden_layers=80, num_attention_heads=64,
                     num_key_value_heads=8, vocab_size=32000)
print("building a model of 65 B parameters on", torch.cuda.get_device_name())
with torch.device("cuda"):
    model = LlamaForCausalLM(config)
print("parameters", sum(p.numel() for p in model.parameters()))
""",
    alone=True,
)
add(
    "torch-neighbour",
    "sh",
    "gpu_out_of_memory",
    """
cat > hold.py <<'END'
import time, torch
free, total = torch.cuda.mem_get_info()
held = torch.empty(int(free * 0.9), dtype=torch.uint8, device="cuda")
open("held", "w").close()
time.sleep(40)
END
cat > train.py <<'END'
import torch
print("device", torch.cuda.get_device_name(), flush=True)
x = torch.randn(60000, 60000, device="cuda")
y = x @ x
print(y.sum().item())
END
python hold.py &
while [ ! -e held ]; do sleep 0.2; done
python train.py
code=$?
kill %1
exit $code
""",
    alone=True,
)
add(
    "torch-cublas",
    "torch",
    "gpu_out_of_memory",
    """
import torch
x = torch.randn(1024, 1024, device="cuda")
free, total = torch.cuda.mem_get_info()
held = torch.empty(free - (600 << 20), dtype=torch.uint8, device="cuda")
rest = []
while True:
    try:
        rest.append(torch.cuda.caching_allocator_alloc(2 << 20))
    except torch.OutOfMemoryError:
        break
print("embedding table is on the GPU; projecting")
print((x @ x).sum().item())
""",
    "cuda_failure",
    "cuda_init_failed",
    alone=True,
)
add(
    "torch-pinned",
    "torch",
    "cpu_out_of_memory",
    """
import torch
torch.cuda.init()
print("pinning the replay buffer")
buffer = torch.empty(4 << 40, dtype=torch.uint8, pin_memory=True)
print("pinned", buffer.numel())
""",
    "gpu_out_of_memory",
    "cuda_failure",
)
add(
    "cupy-pool",
    "torch",
    "gpu_out_of_memory",
    """
import cupy as cp
cp.get_default_memory_pool().set_limit(size=2 * 1024**3)
frames = []
for hour in range(24):
    frames.append(cp.random.rand(1 << 26))
    print("hour", hour, "mean", float(frames[-1].mean()))
""",
    "resource_limit",
)
add(
    "cupy-all",
    "torch",
    "gpu_out_of_memory",
    """
import cupy as cp
n = 160_000
print("pairwise distances of", n, "points")
x = cp.random.rand(n, 3, dtype=cp.float32)
d = cp.zeros((n, n), dtype=cp.float64)
d += (x[:, None, 0] - x[None, :, 0]) ** 2
print(float(d.max()))
""",
    alone=True,
)
add(
    "jax-exhausted",
    "torch",
    "gpu_out_of_memory",
    """
import jax, jax.numpy as jnp
print("devices", jax.devices())
@jax.jit
def gram(x):
    return x @ x.T
x = jnp.ones((400_000, 64))
print(gram(x).sum())
""",
    alone=True,
)
add(
    "jax-params",
    "torch",
    "gpu_out_of_memory",
    """
import jax, jax.numpy as jnp
keys = jax.random.split(jax.random.key(0), 64)
params = []
for layer, key in enumerate(keys):
    params.append(jax.random.normal(key, (65536, 16384), jnp.float32).block_until_ready())
    print(f"layer {layer} initialised")
""",
    alone=True,
)
add(
    "numba-memory",
    "torch",
    "gpu_out_of_memory",
    """
import numpy as np
if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack
from numba import cuda
blocks = []
for i in range(100):
    blocks.append(cuda.device_array(1 << 30, dtype=np.float32))
    print("block", i, "on device")
""",
    alone=True,
)
_CHECK = r"""
#include <cstdio>
#include <cstdlib>
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) { \
    fprintf(stderr, "%s:%d: %s failed: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(e)); exit(1); } } while (0)
"""
add(
    "cu-malloc",
    "cu",
    "gpu_out_of_memory",
    _CHECK
    + r"""
int main() {
    size_t n = (size_t)1 << 38;
    double *grid;
    printf("allocating a grid of %zu cells\n", n / 8);
    CHECK(cudaMalloc(&grid, n));
    CHECK(cudaMemset(grid, 0, n));
    printf("done\n");
}
""",
)
add(
    "cu-thrust",
    "cu",
    "gpu_out_of_memory",
    r"""
#include <cstdio>
#include <thrust/device_vector.h>
#include <thrust/sequence.h>
int main() {
    for (size_t n = 1 << 20; ; n *= 8) {
        thrust::device_vector<double> v(n);
        thrust::sequence(v.begin(), v.end());
        printf("sorted %zu keys\n", n);
        fflush(stdout);
    }
}
""",
    alone=True,
)

# --- indexes, asserts, pointers
add(
    "torch-labels",
    "torch",
    "cuda_failure",
    _TRAINING
    + """
x, y = batch()
y[3] = 10
loss = nn.functional.cross_entropy(model(x), y)
loss.backward()
print("last loss", loss.item())
""",
    "incorrect_inputs",
    "program_error",
    "invalid_memory_access",
)
add(
    "torch-embedding",
    "torch",
    "cuda_failure",
    """
import torch, torch.nn as nn
vocab = nn.Embedding(32000, 512).cuda()
for step in range(3):
    ids = torch.randint(0, 32000 + step * 4, (16, 128), device="cuda")
    if step == 2:
        ids[0, 0] = 32003
    h = vocab(ids).mean().item()
    print("step", step, "hidden", h)
""",
    "incorrect_inputs",
    "program_error",
    "invalid_memory_access",
)
add(
    "torch-gather",
    "torch",
    "cuda_failure",
    """
import torch
scores = torch.randn(32, 100, device="cuda")
best = scores.topk(5).indices + 98
print("beam search")
print(scores.gather(1, best).sum().item())
""",
    "program_error",
    "incorrect_inputs",
    "invalid_memory_access",
)
add(
    "torch-bce",
    "torch",
    "cuda_failure",
    """
import torch
p = torch.rand(1024, device="cuda") * 1.2
t = torch.randint(0, 2, (1024,), device="cuda").float()
print("iter 0")
loss = torch.nn.functional.binary_cross_entropy(p, t)
print(loss.item())
""",
    "incorrect_inputs",
    "program_error",
    "numerical_error",
)
add(
    "torch-multinomial",
    "torch",
    "cuda_failure",
    """
import torch
logits = torch.randn(4, 50257, device="cuda")
logits[2] = float("nan")
probs = torch.softmax(logits, -1)
print("sampling the next token")
print(torch.multinomial(probs, 1).flatten().tolist())
""",
    "numerical_error",
    "model_diverged",
    "incorrect_inputs",
    "program_error",
)
add(
    "cu-oob",
    "cu",
    "invalid_memory_access",
    _CHECK
    + r"""
__global__ void scale(float *x, size_t n) { size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; x[i * n] *= 2.f; }
int main() {
    float *x; size_t n = 1 << 20;
    CHECK(cudaMalloc(&x, n * sizeof(float)));
    printf("launching on %zu elements\n", n);
    scale<<<4096, 256>>>(x, n);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    printf("ok\n");
}
""",
    "cuda_failure",
)
add(
    "cu-misaligned",
    "cu",
    "invalid_memory_access",
    _CHECK
    + r"""
__global__ void load(const char *p, double *out) { *out = *(const double *)(p + 3); }
int main() {
    char *p; double *out;
    CHECK(cudaMalloc(&p, 64));
    CHECK(cudaMalloc(&out, 8));
    load<<<1, 1>>>(p, out);
    CHECK(cudaDeviceSynchronize());
    printf("ok\n");
}
""",
    "cuda_failure",
)
add(
    "cu-hostpointer",
    "cu",
    "invalid_memory_access",
    _CHECK
    + r"""
__global__ void add(int *a, int *b, int *c) { int i = threadIdx.x; c[i] = a[i] + b[i]; }
int main() {
    int *a = (int *)malloc(1024), *b = (int *)malloc(1024), *c;
    CHECK(cudaMalloc(&c, 1024));
    add<<<1, 256>>>((int *)0x10, (int *)0x20, c);
    CHECK(cudaDeviceSynchronize());
    printf("%d %d\n", a[0], b[0]);
}
""",
    "cuda_failure",
)
add(
    "cu-assert",
    "cu",
    "cuda_failure",
    _CHECK
    + r"""
#include <cassert>
__global__ void check(const int *depth) { assert(depth[threadIdx.x] >= 0); }
int main() {
    int host[32] = {}, *depth; host[7] = -1;
    CHECK(cudaMalloc(&depth, sizeof host));
    CHECK(cudaMemcpy(depth, host, sizeof host, cudaMemcpyHostToDevice));
    check<<<1, 32>>>(depth);
    CHECK(cudaDeviceSynchronize());
    printf("tree is sound\n");
}
""",
    "program_error",
    "incorrect_inputs",
)
add(
    "cu-trap",
    "cu",
    "cuda_failure",
    _CHECK
    + r"""
__global__ void solve(int n) { if (n > 3) __trap(); }
int main() {
    for (int n = 0; n < 8; n++) {
        solve<<<1, 32>>>(n);
        CHECK(cudaDeviceSynchronize());
        printf("level %d solved\n", n);
        fflush(stdout);
    }
}
""",
    "program_error",
    "core_dump",
)
add(
    "cu-block",
    "cu",
    "cuda_failure",
    _CHECK
    + r"""
__global__ void k(float *x) { x[threadIdx.x] = 1.f; }
int main() {
    float *x;
    CHECK(cudaMalloc(&x, 4096 * 4));
    for (int threads = 256; threads <= 4096; threads *= 2) {
        k<<<1, threads>>>(x);
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        printf("tuned: %d threads\n", threads);
    }
}
""",
    "program_error",
    "wrong_arguments",
    "resource_limit",
)
add(
    "cu-shared",
    "cu",
    "cuda_failure",
    _CHECK
    + r"""
__global__ void tile(float *x) {
    extern __shared__ float s[];
    s[threadIdx.x] = x[threadIdx.x]; __syncthreads(); x[threadIdx.x] = s[0];
}
int main() {
    float *x;
    CHECK(cudaMalloc(&x, 4096));
    CHECK(cudaFuncSetAttribute(tile, cudaFuncAttributeMaxDynamicSharedMemorySize, 300 * 1024));
    tile<<<1, 128, 300 * 1024>>>(x);
    CHECK(cudaGetLastError());
}
""",
    "program_error",
    "wrong_arguments",
    "resource_limit",
)
add(
    "cu-freed",
    "cu",
    "invalid_memory_access",
    _CHECK
    + r"""
__global__ void step(double *u, size_t n) { for (size_t i = threadIdx.x; i < n; i += blockDim.x) u[i] += 1.0; }
int main() {
    double *u; size_t n = (size_t)1 << 26;
    CHECK(cudaMalloc(&u, n * 8));
    step<<<1, 256>>>(u, 1024);
    CHECK(cudaDeviceSynchronize());
    printf("t = 0.1\n");
    CHECK(cudaFree(u));
    step<<<1, 256>>>(u, n);
    cudaError_t err = cudaDeviceSynchronize();
    if (err != cudaSuccess) { printf("CUDA error %d (%s) at time step 2\n", err, cudaGetErrorName(err)); return 2; }
    printf("t = 0.2\n");
}
""",
    "cuda_failure",
)
add(
    "cu-sanitizer",
    "sh",
    "invalid_memory_access",
    r"""
cat > stencil.cu <<'END'
__global__ void stencil(int *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; x[i + 1] = i; }
int main() { int *x; cudaMalloc(&x, 256 * 4); stencil<<<1, 256>>>(x, 256); return cudaDeviceSynchronize(); }
END
nvcc -lineinfo -o stencil stencil.cu
compute-sanitizer --error-exitcode 1 ./stencil
""",
    "program_error",
    "cuda_failure",
)
add(
    "triton-pointer",
    "torch",
    "invalid_memory_access",
    """
import torch, triton, triton.language as tl
@triton.jit
def scale(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i * n, 1.0)
x = torch.zeros(1 << 20, device="cuda")
for step in range(3):
    scale[(4096 if step == 2 else 1,)](x, x.numel() if step == 2 else 1, BLOCK=1024)
    torch.cuda.synchronize()
    print("step", step, "done")
""",
    "cuda_failure",
)
add(
    "cupy-raw",
    "torch",
    "invalid_memory_access",
    """
import cupy as cp
kernel = cp.RawKernel(r'''
extern "C" __global__ void smear(float* x, long long n) { x[(blockIdx.x * 256LL + threadIdx.x) * n] += 1.0f; }
''', "smear")
x = cp.zeros(1 << 16, dtype=cp.float32)
kernel((1024,), (256,), (x, cp.int64(1 << 20)))
print("smeared", float(x.sum()))
""",
    "cuda_failure",
)
add(
    "numba-index",
    "torch",
    "invalid_memory_access",
    """
import numpy as np
if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack
from numba import cuda
@cuda.jit
def push(x, n):
    i = cuda.grid(1)
    x[i * n] = i
x = cuda.to_device(np.zeros(1024, dtype=np.float32))
push[1024, 256](x, 1 << 20)
print("total", x.copy_to_host().sum())
""",
    "cuda_failure",
)
add(
    "torch-extension",
    "torch",
    "invalid_memory_access",
    """
import torch
from torch.utils.cpp_extension import load_inline
source = '''
#include <torch/extension.h>
__global__ void k(float* x, long n) { x[(blockIdx.x * 256L + threadIdx.x) * n] = 0.f; }
torch::Tensor fuse(torch::Tensor x) { k<<<512, 256>>>(x.data_ptr<float>(), 1L << 24); return x; }
'''
print("building the fused kernel")
ext = load_inline("fused", cpp_sources="torch::Tensor fuse(torch::Tensor x);", cuda_sources=source, functions=["fuse"])
x = torch.randn(4096, device="cuda")
y = ext.fuse(x)
print("mean", y.mean().item())
""",
    "cuda_failure",
)

# --- no device, another version
add(
    "torch-hidden",
    "sh",
    "cuda_init_failed",
    """
export CUDA_VISIBLE_DEVICES=
python - <<'END'
import torch
print("torch", torch.__version__)
x = torch.zeros(8, device="cuda")
END
""",
)
add(
    "torch-seven",
    "sh",
    "cuda_init_failed",
    """
export CUDA_VISIBLE_DEVICES=7
python - <<'END'
import torch
print("starting worker on GPU 7")
model = torch.nn.Linear(4, 4).to("cuda:0")
END
""",
    "wrong_arguments",
)
add(
    "torch-ordinal",
    "torch",
    "cuda_init_failed",
    """
import os, torch
local_rank = int(os.environ.get("LOCAL_RANK", "3"))
torch.cuda.set_device(local_rank)
print("rank", local_rank, "ready")
""",
    "cuda_failure",
    "wrong_arguments",
    "program_error",
)
add(
    "torchrun-four",
    "sh",
    "cuda_init_failed",
    """
cat > ddp.py <<'END'
import os, torch, torch.distributed as dist
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
print("rank", rank, "of", dist.get_world_size())
END
torchrun --master-addr 127.0.0.1 --nproc-per-node 4 ddp.py
""",
    "cuda_failure",
    "wrong_arguments",
    "launch_failed",
)
add(
    "torch-map",
    "sh",
    "cuda_init_failed",
    """
python -c 'import torch; torch.save({"w": torch.ones(3, device="cuda")}, "best.pt"); print("saved best.pt")'
export CUDA_VISIBLE_DEVICES=
python -c 'import torch; print("evaluating"); print(torch.load("best.pt"))'
""",
    "checkpoint_error",
    "program_error",
)
add(
    "torch-fork",
    "torch",
    "program_error",
    """
import torch
from torch.utils.data import DataLoader, Dataset
class OnGpu(Dataset):
    def __init__(self): self.x = torch.randn(100, 8).cuda()
    def __len__(self): return 100
    def __getitem__(self, i): return self.x[i] * 2
print("100 samples on the GPU")
for b in DataLoader(OnGpu(), batch_size=10, num_workers=2):
    print(b.shape)
""",
    "cuda_init_failed",
    "semantic_error",
)
add(
    "jax-hidden",
    "sh",
    "cuda_init_failed",
    """
export CUDA_VISIBLE_DEVICES= JAX_PLATFORMS=cuda
python - <<'END'
import jax.numpy as jnp
print("jax")
print(jnp.ones(3).sum())
END
""",
)
add(
    "cupy-hidden",
    "sh",
    "cuda_init_failed",
    """
export CUDA_VISIBLE_DEVICES=-1
python -c 'import cupy as cp; print("cupy", cp.__version__); print(cp.arange(10).sum())'
""",
)
add(
    "cupy-ordinal",
    "torch",
    "cuda_init_failed",
    """
import cupy as cp
with cp.cuda.Device(2):
    print(cp.ones(5).sum())
""",
    "cuda_failure",
    "wrong_arguments",
    "program_error",
)
add(
    "numba-hidden",
    "sh",
    "cuda_init_failed",
    """
export CUDA_VISIBLE_DEVICES=
python - <<'END'
import numpy as np
if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack
from numba import cuda
print("moving particles to the device")
x = cuda.to_device(np.ones(10))
END
""",
)
add(
    "cu-hidden",
    "sh",
    "cuda_init_failed",
    r"""
cat > md.cu <<'END'
#include <cstdio>
int main() {
    int n = 0;
    cudaError_t e = cudaGetDeviceCount(&n);
    if (e != cudaSuccess) {
        fprintf(stderr, "Fatal error: cannot find a GPU: %s (code %d)\n", cudaGetErrorString(e), e);
        return 1;
    }
    printf("%d GPU\n", n);
}
END
nvcc -o md md.cu
CUDA_VISIBLE_DEVICES=NoDevFiles ./md
""",
)
add(
    "cu-stub",
    "sh",
    "cuda_init_failed",
    r"""
cat > q.cu <<'END'
#include <cstdio>
int main() {
    void *p;
    cudaError_t e = cudaMalloc(&p, 100);
    if (e != cudaSuccess) { printf("CUDA failure: %s\n", cudaGetErrorString(e)); return 3; }
    printf("ok\n");
}
END
nvcc -o q q.cu
stubs=$(dirname "$(find / -path '*stubs/libcuda.so' -not -path '/proc/*' 2>/dev/null | head -1)")
mkdir lib && cp "$stubs/libcuda.so" lib/libcuda.so.1
LD_LIBRARY_PATH=$PWD/lib ./q
""",
    "cannot_load_libs",
    "cuda_version_mismatch",
    "cuda_failure",
)
add(
    "cu-image",
    "sh",
    "cuda_version_mismatch",
    r"""
cat > heat.cu <<'END'
#include <cstdio>
__global__ void heat(float *t) { t[threadIdx.x] += 1.f; }
int main() {
    float *t;
    cudaMalloc(&t, 1024);
    heat<<<1, 256>>>(t);
    cudaError_t e = cudaDeviceSynchronize();
    if (e == cudaSuccess) e = cudaGetLastError();
    if (e != cudaSuccess) { fprintf(stderr, "heat: CUDA error: %s\n", cudaGetErrorString(e)); return 1; }
    printf("ok\n");
}
END
nvcc -gencode arch=compute_100,code=sm_100 -o heat heat.cu
./heat
""",
    "cuda_failure",
    "cannot_load_libs",
)
add(
    "cupy-ptx",
    "sh",
    "cuda_version_mismatch",
    r"""
cat > k.cu <<'END'
extern "C" __global__ void k(float *x) { x[threadIdx.x] = 1.f; }
END
nvcc -ptx -arch=sm_90 -o k.ptx k.cu
sed -i 's/^\.version .*/.version 9.9/' k.ptx
python - <<'END'
import cupy as cp
print("loading kernels")
module = cp.RawModule(path="k.ptx")
module.get_function("k")((1,), (32,), (cp.zeros(32, dtype=cp.float32),))
END
""",
    "compiler_error",
    "cuda_failure",
)
add(
    "ctypes-cudart",
    "torch",
    "cannot_load_libs",
    """
import ctypes
print("loading CUDA 11 runtime")
ctypes.CDLL("libcudart.so.11.0")
""",
    "cuda_version_mismatch",
)
add(
    "so-cudnn",
    "sh",
    "cannot_load_libs",
    r"""
cat > infer.c <<'END'
int cudnnCreate(void **);
int main() { void *h; return cudnnCreate(&h); }
END
cat > fake.c <<'END'
int cudnnCreate(void **h) { return 0; }
END
cc -shared -Wl,-soname,libcudnn.so.7 -o libcudnn.so.7 fake.c
cc -o infer infer.c ./libcudnn.so.7
rm libcudnn.so.7
./infer --model resnet50.plan
""",
    "cuda_version_mismatch",
)
add(
    "flash-missing",
    "torch",
    "import_error",
    """
import torch
print("GPU:", torch.cuda.get_device_name())
from flash_attn import flash_attn_func
""",
    "cannot_load_libs",
)
add(
    "nvml-index",
    "torch",
    "wrong_arguments",
    """
import pynvml
pynvml.nvmlInit()
print("driver", pynvml.nvmlSystemGetDriverVersion())
for i in range(8):
    handle = pynvml.nvmlDeviceGetHandleByIndex(i)
    print(i, pynvml.nvmlDeviceGetMemoryInfo(handle).used >> 20, "MiB")
""",
    "program_error",
    "cuda_init_failed",
)
add(
    "smi-index",
    "sh",
    "wrong_arguments",
    """
set -e
echo "node check"
nvidia-smi -i 5 --query-gpu=name,memory.used --format=csv
echo "node is fine"
""",
    "cuda_init_failed",
    "gpu_hardware_error",
    "launch_failed",
)
add(
    "smi-field",
    "sh",
    "wrong_arguments",
    """
set -e
nvidia-smi --query-gpu=name,fan.rpm --format=csv,noheader
""",
)

# --- NCCL, two ranks on the one GPU that pass for two hosts
_RANKS = """
cat > ranks.py <<'END'
import os, sys, time, datetime, torch, torch.distributed as dist
rank = int(os.environ["RANK"])
os.environ["NCCL_HOSTID"] = f"node{rank}"
os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
os.environ.setdefault("NCCL_IB_DISABLE", "1")
torch.cuda.set_device(0)
dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=20), device_id=torch.device("cuda:0"))
x = torch.ones(1 << 20, device="cuda") * rank
dist.all_reduce(x)
torch.cuda.synchronize()
if rank == 0:
    print("world size", dist.get_world_size(), "sum", x[0].item(), flush=True)
%s
dist.destroy_process_group()
END
"""
add(
    "nccl-fine",
    "sh",
    None,
    _RANKS % "" + "export NCCL_DEBUG=INFO\ntorchrun --master-addr 127.0.0.1 --nproc-per-node 2 ranks.py\n",
)
add(
    "nccl-late",
    "sh",
    "collective_timeout",
    _RANKS
    % """
if rank == 1:
    time.sleep(60)
dist.all_reduce(x)
torch.cuda.synchronize()
"""
    + "torchrun --master-addr 127.0.0.1 --nproc-per-node 2 ranks.py\n",
    "nccl_error",
)
add(
    "nccl-uneven",
    "sh",
    "collective_timeout",
    _RANKS
    % """
for step in range(3 if rank else 5):
    dist.all_reduce(x)
    torch.cuda.synchronize()
    if rank == 0:
        print("step", step, flush=True)
if rank == 1:
    time.sleep(60)
"""
    + "torchrun --master-addr 127.0.0.1 --nproc-per-node 2 ranks.py\n",
    "nccl_error",
)
add(
    "nccl-killed",
    "sh",
    "process_killed",
    _RANKS
    % """
if rank == 1:
    time.sleep(2)
    os.kill(os.getpid(), 9)
for step in range(100):
    dist.all_reduce(x)
    torch.cuda.synchronize()
"""
    + "torchrun --master-addr 127.0.0.1 --nproc-per-node 2 ranks.py\n",
)
add(
    "nccl-raises",
    "sh",
    "incorrect_inputs",
    _RANKS
    % """
for step in range(100):
    if rank == 1 and step == 5:
        data = open("/data/shards/part-00005.bin", "rb").read()
    dist.all_reduce(x)
    torch.cuda.synchronize()
"""
    + "torchrun --master-addr 127.0.0.1 --nproc-per-node 2 ranks.py\n",
)
add(
    "nccl-rank-oom",
    "sh",
    "gpu_out_of_memory",
    _RANKS
    % """
torch.cuda.set_per_process_memory_fraction(0.1)
kept = []
for step in range(100):
    if rank == 1:
        kept.append(torch.empty(1 << 30, dtype=torch.uint8, device="cuda"))
    dist.all_reduce(x)
    torch.cuda.synchronize()
"""
    + "torchrun --master-addr 127.0.0.1 --nproc-per-node 2 ranks.py\n",
)
add(
    "nccl-rank-segv",
    "sh",
    "core_dump",
    _RANKS
    % """
if rank == 1:
    import ctypes
    ctypes.string_at(0)
dist.all_reduce(x)
torch.cuda.synchronize()
"""
    + "torchrun --master-addr 127.0.0.1 --nproc-per-node 2 ranks.py\n",
    "invalid_memory_access",
)
add(
    "nccl-duplicate",
    "sh",
    "nccl_error",
    (_RANKS % "").replace('os.environ["NCCL_HOSTID"]', "unused")
    + "torchrun --master-addr 127.0.0.1 --nproc-per-node 2 ranks.py\n",
    "wrong_arguments",
    "launch_failed",
    "program_error",
)
add(
    "nccl-interface",
    "sh",
    "nccl_error",
    _RANKS % "" + "export NCCL_SOCKET_IFNAME=ib7\ntorchrun --master-addr 127.0.0.1 --nproc-per-node 2 ranks.py\n",
    "network_error",
    "wrong_arguments",
)
add(
    "nccl-cpu-tensor",
    "sh",
    "shape_error",
    _RANKS
    % """
stats = torch.tensor([1.0, 2.0])
dist.all_reduce(stats)
"""
    + "torchrun --master-addr 127.0.0.1 --nproc-per-node 2 ranks.py\n",
    "program_error",
    "nccl_error",
)
add(
    "nccl-alone",
    "sh",
    "collective_timeout",
    """
cat > lone.py <<'END'
import datetime, torch, torch.distributed as dist
print("waiting for the other node", flush=True)
limit = datetime.timedelta(seconds=10)
dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29555", rank=0, world_size=2, timeout=limit)
END
python lone.py
""",
    "network_error",
    "launch_failed",
    "peer_failed",
)
add(
    "nccl-unreachable",
    "sh",
    "network_error",
    """
cat > lone.py <<'END'
import datetime, torch, torch.distributed as dist
print("joining", flush=True)
limit = datetime.timedelta(seconds=8)
dist.init_process_group("nccl", init_method="tcp://127.0.0.1:29556", rank=1, world_size=2, timeout=limit)
END
python lone.py
""",
    "collective_timeout",
    "launch_failed",
)
add(
    "nccl-c",
    "sh",
    "nccl_error",
    r"""
cat > t.py <<'END'
from cupy.cuda import nccl
import cupy as cp
uid = nccl.get_unique_id()
comm = nccl.NcclCommunicator(1, uid, 0)
x = cp.ones(10, dtype=cp.float32)
comm.allReduce(x.data.ptr, x.data.ptr, 10, 99, nccl.NCCL_SUM, cp.cuda.Stream.null.ptr)
print(x)
END
python t.py
""",
    "wrong_arguments",
    "program_error",
    "import_error",
)

# --- types, shapes, devices, numbers
add(
    "torch-devices",
    "torch",
    "shape_error",
    _TRAINING
    + """
print("evaluating")
model(torch.randn(4, 256))
""",
    "program_error",
)
add(
    "torch-targets-cpu",
    "torch",
    "shape_error",
    _TRAINING
    + """
x, y = batch()
print(nn.functional.cross_entropy(model(x), y.cpu()))
""",
    "program_error",
)
add(
    "torch-half",
    "torch",
    "shape_error",
    _TRAINING
    + """
model.half()
x, y = batch()
print(model(x).shape)
""",
    "program_error",
)
add(
    "torch-columns",
    "torch",
    "shape_error",
    _TRAINING
    + """
print(model(torch.randn(4, 255, device="cuda")).shape)
""",
    "program_error",
)
add(
    "torch-numpy",
    "torch",
    "shape_error",
    _TRAINING
    + """
import numpy as np
print("predictions", np.asarray(model(batch()[0]).detach()).shape)
""",
    "program_error",
)
add(
    "torch-sdpa",
    "torch",
    "shape_error",
    """
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
q = torch.randn(2, 8, 128, 64, device="cuda")
print("attention, float32")
with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
    print(torch.nn.functional.scaled_dot_product_attention(q, q, q).shape)
""",
    "program_error",
    "wrong_arguments",
    "semantic_error",
    "cuda_failure",
)
add(
    "cupy-shapes",
    "torch",
    "shape_error",
    """
import cupy as cp
a, b = cp.ones((3, 4)), cp.ones((5, 4))
print("joining features")
print((a @ b).shape)
""",
    "program_error",
)
add(
    "cupy-implicit",
    "torch",
    "shape_error",
    """
import cupy as cp, numpy as np
x = cp.linspace(0, 1, 100)
print("plotting", x.shape)
print(np.trapezoid(np.ones(100), np.asarray(x)))
""",
    "program_error",
    "semantic_error",
)
add(
    "jax-dot",
    "torch",
    "shape_error",
    """
import jax, jax.numpy as jnp
@jax.jit
def loss(w, x): return jnp.tanh(x @ w).mean()
print("epoch 0", loss(jnp.ones((8, 3)), jnp.ones((16, 8))))
print("epoch 1", loss(jnp.ones((8, 3)), jnp.ones((16, 9))))
""",
    "program_error",
)
add(
    "jax-nans",
    "torch",
    "numerical_error",
    """
import jax, jax.numpy as jnp
jax.config.update("jax_debug_nans", True)
@jax.jit
def step(x): return jnp.log(x - 1.0).sum()
for i in range(4):
    print("iteration", i, step(jnp.full(4, 3.0 - i)))
""",
    "model_diverged",
    "incorrect_inputs",
)
add(
    "torch-diverged",
    "torch",
    "model_diverged",
    _TRAINING
    + """
for group in opt.param_groups:
    group["lr"] = 1e30
for step in range(20, 60):
    x, y = batch()
    loss = nn.functional.cross_entropy(model(x), y)
    print(f"step {step} loss {loss.item():.4f}")
    if not torch.isfinite(loss):
        raise SystemExit("loss is not finite, stopping training")
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "numerical_error",
)
add(
    "torch-anomaly",
    "torch",
    "numerical_error",
    """
import torch
torch.autograd.set_detect_anomaly(True)
x = torch.zeros(4, device="cuda", requires_grad=True)
y = (torch.sqrt(x) * 0).sum() + (x / x).sum() * 0
print("forward", y.item())
y.backward()
""",
    "model_diverged",
    "program_error",
)
add(
    "torch-cholesky",
    "torch",
    "numerical_error",
    """
import torch
a = torch.randn(64, 64, device="cuda")
cov = a @ a.T - 100 * torch.eye(64, device="cuda")
print("fitting a Gaussian process to 64 points")
torch.linalg.cholesky(cov)
""",
    "incorrect_inputs",
)
add(
    "cupy-singular",
    "torch",
    "numerical_error",
    """
import cupy as cp, cupyx
a = cp.array([[1.0, 2.0], [2.0, 4.0]])
print("condition", float(cp.linalg.cond(a)))
with cupyx.errstate(linalg="raise"):
    print(cp.linalg.cholesky(a - 3 * cp.eye(2)))
""",
    "incorrect_inputs",
)
add(
    "torch-ckpt-short",
    "torch",
    "checkpoint_error",
    _TRAINING
    + """
torch.save(model.state_dict(), "last.ckpt")
data = open("last.ckpt", "rb").read()
open("last.ckpt", "wb").write(data[: len(data) // 2])
print("resuming from last.ckpt")
model.load_state_dict(torch.load("last.ckpt"))
""",
    "incorrect_inputs",
)
add(
    "torch-ckpt-size",
    "torch",
    "checkpoint_error",
    _TRAINING
    + """
torch.save(model.state_dict(), "last.ckpt")
wider = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
print("resuming from last.ckpt")
wider.load_state_dict(torch.load("last.ckpt"))
""",
    "shape_error",
    "incorrect_inputs",
    "semantic_error",
    "wrong_arguments",
)
add(
    "torch-ckpt-disk",
    "sh",
    "disk_full",
    """
mkdir -p out && mount -t tmpfs -o size=8m none out
python - <<'END'
import torch
w = torch.randn(4096, 4096, device="cuda")
print("step 1000: saving out/step1000.pt", flush=True)
torch.save({"w": w}, "out/step1000.pt")
END
code=$?
umount out
exit $code
""",
    "checkpoint_error",
)

# --- compilers
add(
    "nvcc-undefined",
    "cu",
    "compiler_error",
    """
#include <cstdio>
__global__ void k(float *x) { x[threadIdx.x] = blockDim.w * scale; }
int main() { k<<<1, 32>>>(nullptr); printf("ok\\n"); }
""",
    "syntax_error",
    "program_error",
)
add(
    "nvcc-old",
    "sh",
    "cuda_version_mismatch",
    """
cat > k.cu <<'END'
int main() { return 0; }
END
nvcc -gencode arch=compute_35,code=sm_35 -o k k.cu && ./k
""",
    "compiler_error",
    "wrong_arguments",
)
add(
    "nvcc-link",
    "sh",
    "compiler_error",
    """
cat > k.cu <<'END'
#include <cublas_v2.h>
#include <cstdio>
int main() { cublasHandle_t h; printf("%d\\n", cublasCreate(&h)); }
END
nvcc -o k k.cu && ./k
""",
    "cannot_load_libs",
)
add(
    "cupy-nvrtc",
    "torch",
    "compiler_error",
    """
import cupy as cp
print("compiling kernels")
k = cp.RawKernel('extern "C" __global__ void k(float* x) { x[threadIdx.x] = 1.0f }', "k")
k((1,), (32,), (cp.zeros(32, dtype=cp.float32),))
""",
    "syntax_error",
    "program_error",
)
add(
    "triton-syntax",
    "torch",
    "compiler_error",
    """
import torch, triton, triton.language as tl
@triton.jit
def k(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    w = [a * 2 for a in v]
    tl.store(x + i, w)
print("warming up kernels")
k[(1,)](torch.ones(64, device="cuda"), BLOCK=64)
""",
    "program_error",
    "syntax_error",
    "semantic_error",
)
add(
    "triton-power",
    "torch",
    "compiler_error",
    """
import torch, triton, triton.language as tl
@triton.jit
def k(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) + 1)
for n in (32, 64, 100):
    k[(1,)](torch.ones(n, device="cuda"), BLOCK=n)
    print("block of", n)
""",
    "wrong_arguments",
    "program_error",
    "shape_error",
)
add(
    "triton-shared",
    "torch",
    "resource_limit",
    """
import torch, triton, triton.language as tl
@triton.jit
def mm(a, b, c, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    x, y = tl.load(a + i * N + j), tl.load(b + i * N + j)
    tl.store(c + i * N + j, tl.dot(x, y))
for n in (64, 128, 256, 512):
    a = torch.randn(n, n, device="cuda", dtype=torch.float16)
    c = torch.empty(n, n, device="cuda", dtype=torch.float32)
    mm[(1,)](a, a, c, N=n)
    torch.cuda.synchronize()
    print("tile", n)
""",
    "gpu_out_of_memory",
    "cuda_failure",
    "compiler_error",
    "program_error",
)
add(
    "dynamo-graph",
    "torch",
    "compiler_error",
    """
import torch
@torch.compile(fullgraph=True)
def f(x):
    y = x.sin()
    torch._dynamo.graph_break()
    return y.cos()
print("compiling")
print(f(torch.ones(3, device="cuda")))
""",
    "program_error",
    "semantic_error",
)
add(
    "numba-typing",
    "torch",
    "program_error",
    """
import numpy as np
if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack
from numba import cuda
@cuda.jit
def k(x):
    x[0] = "one"
k[1, 1](cuda.to_device(np.zeros(3)))
""",
    "compiler_error",
    "shape_error",
    "semantic_error",
)
add(
    "graph-capture",
    "torch",
    "cuda_failure",
    """
import torch
x = torch.randn(64, 64, device="cuda")
(x @ x).sum()
torch.cuda.synchronize()
g = torch.cuda.CUDAGraph()
print("capturing")
with torch.cuda.graph(g):
    y = x @ x
    print("max", y.max().item())
""",
    "program_error",
)
add(
    "stack-lightning",
    "torch",
    "wrong_arguments",
    """
import pytorch_lightning as pl
trainer = pl.Trainer(accelerator="gpu", devices=4, max_epochs=1)
print(trainer.num_devices)
""",
    "launch_failed",
    "cuda_init_failed",
    "resource_limit",
)
add(
    "stack-precision",
    "torch",
    "wrong_arguments",
    """
from transformers import TrainingArguments
args = TrainingArguments("out", fp16=True, bf16=True)
print(args.device)
""",
)
add(
    "stack-onnx",
    "torch",
    "incorrect_inputs",
    """
import onnxruntime as ort
open("model.onnx", "wb").write(b"version https://git-lfs.github.com/spec/v1\\noid sha256:0\\nsize 10\\n")
print("providers", ort.get_available_providers())
ort.InferenceSession("model.onnx", providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
""",
)

# --- what ends well
add("ok-train", "torch", None, _TRAINING + 'print("done, error rate 0.1")\n')
add(
    "ok-oom-halved",
    "torch",
    None,
    """
import torch
size, net = 1 << 20, torch.nn.Conv2d(3, 64, 3).cuda()
torch.cuda.set_per_process_memory_fraction(0.2)
while True:
    try:
        y = net(torch.randn(size, 3, 64, 64, device="cuda")).mean().item()
        break
    except torch.OutOfMemoryError as error:
        print("caught:", str(error).splitlines()[0])
        size //= 4
        torch.cuda.empty_cache()
print("batch size", size, "fits, mean", round(y, 5))
""",
)
add(
    "ok-oom-logged",
    "torch",
    None,
    """
import logging, torch
logging.basicConfig(level=logging.INFO)
try:
    torch.empty(1 << 42, dtype=torch.uint8, device="cuda")
except RuntimeError:
    logging.exception("cache does not fit on the GPU, keeping it on the CPU")
logging.info("training goes on")
print("epoch 1 accuracy 0.91")
""",
)
add(
    "ok-scaler",
    "torch",
    None,
    _TRAINING
    + """
scaler = torch.amp.GradScaler("cuda", init_scale=2.0**60)
for step in range(30):
    x, y = batch()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = nn.functional.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    before = scaler.get_scale()
    scaler.step(opt); scaler.update(); opt.zero_grad()
    if scaler.get_scale() < before:
        print(f"step {step}: overflow: inf or NaN in gradients, skipping step, loss scale {scaler.get_scale():.3g}")
print("final loss", loss.item())
""",
)
add(
    "ok-suppressed",
    "torch",
    None,
    """
import torch
torch._dynamo.config.suppress_errors = True
def broken(gm, inputs):
    raise RuntimeError("backend compiler failed: no lowering for sin")
@torch.compile(backend=broken)
def f(x): return x.sin() + 1
print(f(torch.ones(3, device="cuda")).sum().item())
print("finished")
""",
)
add(
    "ok-jax",
    "torch",
    None,
    """
import jax, jax.numpy as jnp
from jax import random
key = random.key(1)
w = jnp.zeros(8)
x = random.normal(key, (256, 8)); y = x @ jnp.arange(8.0)
grad = jax.jit(jax.grad(lambda w: ((x @ w - y) ** 2).mean()))
for i in range(50):
    w = w - 0.05 * grad(w)
print("max error", float(jnp.abs(w - jnp.arange(8.0)).max()))
""",
)
add(
    "ok-onnx-fallback",
    "torch",
    None,
    """
import numpy as np, onnx, onnxruntime as ort
from onnx import TensorProto, helper
g = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g",
    [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in "x"],
    [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in "y"])
m = helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)]); m.ir_version = 9
s = ort.InferenceSession(m.SerializeToString(), providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
print("runs on", s.get_providers(), s.run(None, {"x": np.array([-1, 0, 2], np.float32)})[0])
""",
)
add(
    "ok-cu-fallback",
    "cu",
    None,
    r"""
#include <cstdio>
#include <cstdlib>
int main() {
    void *p;
    cudaError_t e = cudaMalloc(&p, (size_t)1 << 41);
    if (e != cudaSuccess) {
        fprintf(stderr, "warning: cudaMalloc failed (%s), falling back to blocks\n", cudaGetErrorString(e));
        e = cudaMalloc(&p, 1 << 20);
    }
    printf("GPU error counters: 0 uncorrectable, 0 correctable\nresult %d\n", (int)e);
    return e;
}
""",
)
add(
    "ok-cu-warnings",
    "sh",
    None,
    """
cat > k.cu <<'END'
#include <cstdio>
__global__ void k(float *x) { float unused; int n; x[0] = n; }
int main() { float *x; cudaMalloc(&x, 4); k<<<1, 1>>>(x); printf("sync %d\\n", cudaDeviceSynchronize()); return 0; }
END
nvcc -Xcompiler -Wall -o k k.cu
./k
""",
)
add(
    "ok-smi",
    "sh",
    None,
    """
nvidia-smi
nvidia-smi -q -d ECC,PAGE_RETIREMENT | head -40
nvidia-smi -i 3 || echo "only one GPU here; going on"
python -c 'import torch; print("cuda", torch.cuda.is_available())'
""",
)
add(
    "ok-retry",
    "sh",
    None,
    """
for try in 1 2; do
    if [ $try = 1 ]; then export CUDA_VISIBLE_DEVICES=4; else unset CUDA_VISIBLE_DEVICES; fi
    if python -c 'import torch; print(torch.ones(2, device="cuda").sum().item())'; then
        echo "attempt $try succeeded"
        exit 0
    fi
    echo "attempt $try failed, retrying on another GPU"
done
exit 1
""",
)
add(
    "ok-test-suite",
    "sh",
    None,
    """
cat > test_gpu.py <<'END'
import pytest, torch
def test_out_of_memory():
    with pytest.raises(torch.OutOfMemoryError): torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
def test_devices():
    with pytest.raises(RuntimeError, match="same device"): torch.ones(2, device="cuda") + torch.ones(2)
@pytest.mark.xfail(reason="CUDA error on purpose")
def test_known_failure():
    raise RuntimeError("CUDA error: unspecified launch failure")
END
python -m pytest -v -rx test_gpu.py
""",
)
add(
    "ok-sanitizer",
    "sh",
    None,
    """
cat > k.cu <<'END'
__global__ void k(int *x) { x[threadIdx.x] = 1; }
int main() { int *x; cudaMalloc(&x, 1024); k<<<1, 256>>>(x); cudaDeviceSynchronize(); cudaFree(x); return 0; }
END
nvcc -o k k.cu
compute-sanitizer --leak-check full --error-exitcode 1 ./k
""",
)
add(
    "ok-nan-skipped",
    "torch",
    None,
    """
import torch
bad = 0
for step in range(40):
    loss = torch.randn((), device="cuda") if step % 9 else torch.tensor(float("nan"), device="cuda")
    if torch.isnan(loss):
        bad += 1
        print(f"step {step}: WARNING: NaN loss, batch skipped")
        continue
print(f"finished with {bad} bad batches")
""",
)
add(
    "ok-cupy",
    "torch",
    None,
    """
import cupy as cp
try:
    cp.linalg.cholesky(cp.array([[1.0, 2.0], [2.0, 1.0]]))
    ok = True
except Exception as error:
    ok = False
x = cp.random.rand(1000, 1000)
print("solved, residual", float(cp.abs(x @ cp.linalg.inv(x) - cp.eye(1000)).max()), "cholesky", ok)
""",
)
add(
    "ok-killed-helper",
    "sh",
    None,
    """
python - <<'END'
import multiprocessing as mp, os, time, torch
def help():
    torch.zeros(1, device="cuda"); time.sleep(60)
if __name__ == "__main__":
    p = mp.get_context("fork").Process(target=help); p.start(); time.sleep(4); p.kill(); p.join()
    print("prefetcher killed with", p.exitcode, "- not needed any more")
    print("training done", torch.ones(3, device="cuda").sum().item())
END
""",
)
add(
    "ok-ordinal-handled",
    "torch",
    None,
    """
import torch
for i in range(2):
    try:
        torch.cuda.set_device(i)
        print("using cuda:", i, torch.cuda.get_device_name(i))
    except Exception as error:
        print("cuda:", i, "not usable:", error)
print("1 of 2 devices usable, going on")
""",
)
