python3 -c "
import time
held = []
for i in range(6):
    held.append(bytearray(8 << 20))
    end = time.time() + 0.2
    while time.time() < end: pass
" tool-grow &
sleep 0.5
python3 -c "
import time
held = bytearray(20 << 20)
time.sleep(0.6)
" tool-hold &
awk 'BEGIN { for (i = 0; i < 3000000; i++) s += i }' tool-count
for i in 1 2 3 4 5 6; do ls >/dev/null; done
wait
